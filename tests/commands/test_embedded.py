from __future__ import annotations

import threading
from pathlib import Path

import pytest

from proxy.commands.embedded import FetchBar, embedded_model, serve_beside
from proxy.config import BackendConfig, Config
from proxy.core.errors import ConfigError
from proxy.server import Server, bind
from proxy.weights import ensure_model
from tests.support.proxy import get


@pytest.fixture(scope="module")
def model_file() -> Path:
    return ensure_model(lambda done, total: None)


def test_the_bar_follows_the_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    bar = FetchBar()
    for done in (0, 40, 40, 100):
        bar(done, 100)
    assert bar._bar.pos == 100
    out, err = capsys.readouterr()
    assert "Fetching the model, once" in err
    assert out == ""


def test_when_the_engine_dies_serving_ends_and_says_so(model_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def kill(url: str) -> None:
        assert get(f"{url}/ready").status_code == 200
        assert model._process is not None
        model._process.kill()

    def ready(url: str) -> None:
        threading.Thread(target=kill, args=(url,)).start()

    with embedded_model(model_file) as model, bind("127.0.0.1", 0) as bound:
        assert "Starting the model SmolLM2-135M-Instruct.Q4_1 ..." in capsys.readouterr().err
        server = Server(Config((BackendConfig(model.url),)), bound, ready)
        with pytest.raises(ConfigError, match=r"engine ended by itself(?s:.*)exit status -9"):
            serve_beside(server, model)
    assert not model.alive
