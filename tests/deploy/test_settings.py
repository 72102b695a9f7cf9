"""What the examples of a deployment set is there to be set."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from proxy.settings.keys import BACKEND, BACKEND_PREFIX, SERVER, SERVER_PREFIX
from proxy.settings.load import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
EXAMPLES = [ROOT / "Dockerfile", *sorted(DEPLOY.rglob("*.yaml")), DEPLOY / "README.md"]
ELSEWHERE = {"TOOLGRAFT_CACHE"}


def test_the_settings_for_kubernetes_can_be_used(tmp_path: Path) -> None:
    manifest = (DEPLOY / "kubernetes" / "toolgraft.yaml").read_text("utf-8")
    found = re.search(r"^  toolgraft\.toml: \|\n((?:    .*\n|\n)+)", manifest, re.MULTILINE)
    assert found
    settings = textwrap.dedent(found[1])
    file = tmp_path / "toolgraft.toml"
    others = re.findall(r'# \w[\w.]*: +(url = ".*")', settings)
    assert len(others) == 2
    for url in (None, *others):
        file.write_text(re.sub(r"^url = .*$", url, settings, flags=re.MULTILINE) if url else settings)
        config = load({}, {"CLIENT_KEYS": "one,two"}, file)
        assert len(config.client_keys) == 2
        seconds = re.search(r"terminationGracePeriodSeconds: (\d+)", manifest)
        pause = re.search(r"sleep: { seconds: (\d+) }", manifest)
        assert seconds
        assert pause
        assert int(seconds[1]) > config.shutdown_timeout + int(pause[1])


def test_each_url_is_that_of_a_service() -> None:
    manifest = (DEPLOY / "kubernetes" / "toolgraft.yaml").read_text("utf-8")
    for host, port in re.findall(r"http://([\w.-]+):(\d+)", manifest):
        service = host.rpartition(".")[2]
        beside = (DEPLOY / "kubernetes" / f"{service}.yaml").read_text("utf-8")
        assert re.search(rf"kind: Service\nmetadata:\n  name: {service}\n", beside)
        assert f"port: {port}, targetPort: http" in beside
        assert f"containerPort: {port}" in beside


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_variable_is_known(file: Path) -> None:
    known = {key.variable(SERVER_PREFIX) for key in SERVER} | {key.variable(BACKEND_PREFIX) for key in BACKEND}
    assert set(re.findall(r"\bTOOLGRAFT_[A-Z_]+", file.read_text("utf-8"))) <= known | ELSEWHERE
