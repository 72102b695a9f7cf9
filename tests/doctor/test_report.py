from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

from proxy.commands.serve import serve
from proxy.config import BackendConfig
from proxy.doctor.findings import Finding
from proxy.doctor.report import Report, as_json, as_text, flags, toml
from proxy.settings.load import load
from proxy.trial.run import Limits, Outcome

URL = "http://127.0.0.1:8080"
CONFIG = BackendConfig(
    URL,
    dispatcher="xml",
    model='a "big" one',
    system_role=False,
    prompt_example="on",
    constrain="always",
    starts_in_reasoning=True,
)
REPORT = Report(
    URL,
    (Finding("server", "llama.cpp b1"), Finding("context", "512 tokens", "bad", "Give it more.")),
    "m",
    {"xml": [Outcome("p", "c", True, True, True, False, 1200, 34, 1.5), Outcome("q", "c", True, error="no")]},
    Limits(512, 60),
    CONFIG,
    key_env="KEY",
)


ENVIRON = {"KEY": "sk-1"}


def test_the_recommended_lines_are_what_serve_reads(tmp_path: Path) -> None:
    file = tmp_path / "toolgraft.toml"
    file.write_text(toml(REPORT), "utf-8")
    assert load({}, ENVIRON, file).backends == (replace(CONFIG, key="sk-1"),)


def test_defaults_are_not_repeated() -> None:
    assert toml(replace(REPORT, config=BackendConfig(URL), key_env=None)) == f'[[backend]]\nurl = "{URL}"'


def test_the_recommended_command_is_what_serve_reads() -> None:
    program, command, *options = shlex.split(flags(REPORT))
    assert (program, command) == ("toolgraft", "serve")
    with serve.make_context("serve", options) as context:
        given = {name: value for name, value in context.params.items() if name not in ("local", "model_file", "file")}
    assert load(given, ENVIRON).backends == (replace(CONFIG, key="sk-1"),)


def test_the_embedded_model_is_served_by_a_flag() -> None:
    report = replace(REPORT, local=True, config=BackendConfig(URL, constrain="always"), key_env=None)
    assert flags(report) == "toolgraft serve --local --constrain always"
    assert as_json(report)["recommended"] == {
        "settings": {"constrain": "always"},
        "toml": None,
        "command": "toolgraft serve --local --constrain always",
    }


def test_for_people() -> None:
    lines = as_text(REPORT).splitlines()
    assert lines[0] == f"toolgraft check: {URL}"
    assert "  ok    server   llama.cpp b1" in lines
    assert "  bad   context  512 tokens" in lines
    assert lines[lines.index("  bad   context  512 tokens") + 1].strip() == "Give it more."
    (row,) = (line.split() for line in lines if line.startswith("  xml"))
    assert row == ["xml", "1/2", "1/2", "0", "1", "1,200", "34", "1.50"]
    assert "    [[backend]]" in lines
    assert lines[-1] == f"or: {flags(REPORT)}"


def test_the_embedded_model_has_no_url_to_write_down() -> None:
    text = as_text(replace(REPORT, local=True, config=BackendConfig(URL), key_env=None))
    assert text.endswith("Recommended: toolgraft serve --local")
    assert URL not in text


def test_what_ended_early_has_no_table_and_no_advice() -> None:
    text = as_text(Report(URL, (Finding("reachable", "Nobody there.", "bad", "Start it."),)))
    assert "Nobody there." in text
    assert "valid" not in text
    assert "Recommended" not in text


def test_for_programs() -> None:
    told = json.loads(json.dumps(as_json(REPORT)))
    assert (told["url"], told["model"], told["fine"]) == (URL, "m", False)
    assert told["findings"][1] == {"about": "context", "said": "512 tokens", "level": "bad", "mend": "Give it more."}
    assert (told["trial"]["xml"]["asked"], told["trial"]["xml"]["right"]) == (2, 1)
    assert [outcome["error"] for outcome in told["trial"]["xml"]["outcomes"]] == [None, "no"]
    assert told["recommended"]["settings"]["dispatcher"] == "xml"
    assert as_json(Report(URL, REPORT.findings[:1]))["recommended"] is None
    assert as_json(Report(URL, REPORT.findings[:1]))["fine"] is True
