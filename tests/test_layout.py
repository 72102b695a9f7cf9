"""The tree keeps its own rules: tests mirror modules, files stay small, and nothing names a machine's paths."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "proxy").rglob("*.py"))
MOST_LINES = 400
TABLES = {"core/dialects.py"}
"""Modules that are one table: as long as it has rows."""

TESTED_ELSEWHERE = {
    "__main__.py": "test_cli.py",
    "core/callmodes.py": "core/test_parser.py",
    "core/machine.py": "core/test_parser.py",
    "core/tentative.py": "core/test_parser.py",
    "core/thinking.py": "core/test_parser.py",
    "core/regions.py": "core/test_parser.py",
    "core/output.py": "core/test_parser.py",
    "core/errors.py": "wire/test_openai_errors.py",
    "core/events.py": "core/test_collect.py",
    "core/forms.py": "core/test_dialects.py",
    "core/notations.py": "core/test_dialects.py",
    "core/protocol.py": "core/test_dialects.py",
    "core/bodies/base.py": "core/bodies/test_jsonbody.py",
    "doctor/findings.py": "doctor/test_examine.py",
    "surfaces/base.py": "surfaces/test_chat.py",
}
"""Modules that hold only values, or one half of what another module does, and where that is tested."""


def relative(module: Path) -> str:
    return module.relative_to(ROOT / "proxy").as_posix()


@pytest.mark.parametrize("module", [module for module in MODULES if module.name != "__init__.py"], ids=relative)
def test_every_module_has_its_test(module: Path) -> None:
    name = relative(module)
    test = TESTED_ELSEWHERE.get(name) or f"{Path(name).parent / f'test_{module.name}'}"
    assert (ROOT / "tests" / test).is_file(), f"{name} wants tests/{test}"


@pytest.mark.parametrize("module", [module for module in MODULES if relative(module) not in TABLES], ids=relative)
def test_no_module_holds_two_things(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= MOST_LINES


def test_the_list_of_exceptions_is_true() -> None:
    for module, test in TESTED_ELSEWHERE.items():
        assert (ROOT / "proxy" / module).is_file(), module
        assert (ROOT / "tests" / test).is_file(), test
