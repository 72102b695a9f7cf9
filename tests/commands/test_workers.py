from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from proxy.access import hash_key
from proxy.cli import main
from proxy.commands.workers import COUNTERS, HELD, PLACES, counting_together, share
from proxy.config import BackendConfig, Config
from tests.commands.test_serve import next_line, serving
from tests.support.backend import DONE, Backend, Exchange, chunk, sse, text
from tests.support.proxy import get, http_client, post

pytestmark = pytest.mark.slow

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
KEY = {"authorization": "Bearer tg-ann"}
KEYS = f"client_keys = {{ ann = '{hash_key(b'tg-ann')}' }}\nmay_reload = 'ann'\n"
TWO = ("--workers", "2", "--dispatcher", "native")


@pytest.fixture(autouse=True)
def _counts_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed command leaves behind goes with the test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def children(process: subprocess.Popen[str]) -> list[int]:
    """The workers of a running command."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def others_after(process: subprocess.Popen[str], gone: int) -> list[int]:
    """The workers, once there is another one in the place of the one that is ``gone``."""
    while len(now := children(process)) < 2 or gone in now:
        time.sleep(0.01)
    return now


def samples(url: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(get(url + "/metrics").text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def requests(url: str) -> list[float]:
    """How many chat requests were counted, by the values of the labels."""
    return [
        value for (name, *labels), value in samples(url).items() if name.endswith("requests_total") and "chat" in labels
    ]


@contextmanager
def asking(url: str) -> Iterator[list[int]]:
    """Somebody who asks all the time, on a new connection each: the statuses of the answers, 0 for none."""
    statuses: list[int] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            try:
                statuses.append(get(url + "/health").status_code)
            except httpx2.TransportError:
                statuses.append(0)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(("place", "at_once", "waiting", "rate"), [(0, 2, 34, 3), (1, 2, 33, 2), (2, 1, 33, 2)])
def test_a_worker_has_its_share(place: int, at_once: int, waiting: int, rate: int) -> None:
    backend = BackendConfig("http://b", max_concurrent=5)
    shared = share(Config((backend,), rate_limit=7), place, 3)
    assert (shared.backends[0].max_concurrent, shared.backends[0].max_queue) == (at_once, waiting)
    assert shared.rate_limit == rate


def test_what_has_no_limit_has_no_share() -> None:
    shared = share(Config((BackendConfig("http://b", max_queue=0),)), 3, 4)
    assert (shared.backends[0].max_concurrent, shared.backends[0].max_queue, shared.rate_limit) == (None, 0, None)
    assert share(Config((BackendConfig("http://b"),), rate_limit=2), 3, 4).rate_limit == 1


def test_two_serve_and_a_dead_one_is_replaced_while_requests_go_on() -> None:
    with Backend() as backend, serving("--backend", backend.url, *TWO) as (process, url):
        first, second = children(process)
        with asking(url) as statuses:
            os.kill(first, signal.SIGKILL)
            assert "worker 1 ended (SIGKILL)" in next_line(process, "there will be another one")
            assert second in others_after(process, first)
            backend.script(text("hi"))
            assert post(url + "/v1/chat/completions", json=CHAT).status_code == 200
        assert statuses.count(200) > 1
        assert len(statuses) - statuses.count(200) <= 1  # what was being answered by the one that was killed
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@contextmanager
def stopped(worker: int) -> Iterator[None]:
    """Let the other one answer for a while."""
    os.kill(worker, signal.SIGSTOP)
    while ") T " not in Path(f"/proc/{worker}/stat").read_text():
        time.sleep(0.001)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def test_each_tells_how_busy_the_other_is() -> None:
    async def long(exchange: Exchange) -> None:
        await exchange.head(200, "text/event-stream")
        await exchange.write(chunk({"content": "one"}).encode())
        await exchange.wait_for_hang_up()

    with Backend() as backend, serving("--backend", backend.url, *TWO) as (process, url), http_client(url) as client:
        backend.script(long)
        busy = "toolgraft_backend_requests", backend.url.removeprefix("http://")
        with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            for worker in children(process):
                told = 0.0
                while told != 1:
                    time.sleep(0.1)
                    with stopped(worker):
                        told = samples(url).get(busy, 0.0)
        while samples(url)[busy] != 0:
            time.sleep(0.05)


def test_both_take_requests_and_count_them_together() -> None:
    with Backend() as backend, serving("--backend", backend.url, *TWO) as (process, url):
        for worker in children(process):
            with stopped(worker):
                backend.script(text("hi"))
                assert post(url + "/v1/chat/completions", json=CHAT).status_code == 200
        busy = "toolgraft_backend_requests", backend.url.removeprefix("http://")
        while requests(url) != [2] or samples(url)[busy]:  # a request counts once its answer is out
            time.sleep(0.05)
        assert len([name for name, *_ in samples(url) if name == "toolgraft_requests_in_progress"]) == 1


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_open_streams_end_before_the_workers_do(signum: signal.Signals) -> None:
    pieces = [chunk({"content": str(number)}) for number in range(20)]
    with Backend() as backend, serving("--backend", backend.url, *TWO) as (process, url):
        backend.script(sse(*pieces, chunk({}, "stop"), DONE, pause=0.03))
        with (
            http_client(url) as client,
            client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer,
        ):
            raw = answer.iter_raw()
            first = next(raw)
            process.send_signal(signum)
            rest = b"".join(raw)
        assert (first + rest).endswith(DONE.encode())
        assert process.wait(20) == 0


@pytest.mark.parametrize("by", ["signal", "request"])
def test_all_of_them_reload_and_streams_go_on(tmp_path: Path, by: str) -> None:
    file = tmp_path / "x.toml"
    pieces = [chunk({"content": str(number)}) for number in range(20)]
    with Backend() as backend, Backend() as other:
        file.write_text(f"{KEYS}workers = 2\n[[backend]]\nurl = '{backend.url}'\ndispatcher = 'native'")
        with serving("--config", str(file)) as (process, url), http_client(url) as client:
            backend.script(sse(*pieces, chunk({}, "stop"), DONE, pause=0.03))
            with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}, headers=KEY) as answer:
                raw = answer.iter_raw()
                first = next(raw)
                file.write_text(f"{KEYS}workers = 3\n[[backend]]\nurl = '{other.url}'\ndispatcher = 'native'")
                if by == "signal":
                    process.send_signal(signal.SIGHUP)
                else:
                    told = post(url + "/-/reload", headers=KEY).json()
                    assert told == {"status": "reloaded", "needs_restart": ["workers"]}
                    next_line(process, "the settings were read again")  # by the one that was asked
                next_line(process, "the settings were read again")
                next_line(process, "the settings were read again")
                for _ in range(6):
                    other.script(text("hi"))
                    assert post(url + "/v1/chat/completions", json=CHAT, headers=KEY).status_code == 200
                rest = b"".join(raw)
            assert (first + rest).endswith(DONE.encode())
            assert (len(backend.chats), len(other.chats)) == (1, 6)
            assert len(children(process)) == 2
            worker = children(process)[0]
            os.kill(worker, signal.SIGKILL)  # the one that takes its place begins with the new settings
            others_after(process, worker)
            other.script(text("hi"))
            assert post(url + "/v1/chat/completions", json=CHAT, headers=KEY).status_code == 200
            assert len(backend.chats) == 1


def test_a_file_that_is_broken_changes_nothing_and_harms_no_worker_to_come(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    with Backend() as backend:
        file.write_text(f"{KEYS}workers = 2\n[[backend]]\nurl = '{backend.url}'")
        with serving("--config", str(file)) as (process, url):
            file.write_text(f"{KEYS}workers = 2\n[[backend]]\nurll = 'x'")
            process.send_signal(signal.SIGHUP)
            assert "no key `urll`" in next_line(process, "the settings are as they were")
            worker = children(process)[0]
            os.kill(worker, signal.SIGKILL)
            others_after(process, worker)
            assert post(url + "/-/reload", headers=KEY).status_code == 400
            assert get(url + "/health").status_code == 200
            assert len(children(process)) == 2


def test_workers_do_not_outlive_the_parent() -> None:
    with serving("--backend", "http://127.0.0.1:9", *TWO) as (process, url):
        process.kill()
        process.wait()
        with pytest.raises(ConnectionError), http_client(url) as client:  # noqa: PT012
            while True:
                try:
                    client.get("/health")
                except Exception as error:
                    raise ConnectionError from error


def test_what_killed_ones_have_left_behind_goes_at_the_next_start(tmp_path: Path) -> None:
    with serving("--backend", "http://127.0.0.1:9", *TWO) as (process, _):
        (held,) = tmp_path.glob(PLACES)
        with serving("--backend", "http://127.0.0.1:9", *TWO) as (other, url):
            assert held in tmp_path.glob(PLACES)  # those who live keep theirs
            workers = children(process)
            process.kill()
            process.wait()
            while any(Path(f"/proc/{worker}").exists() for worker in workers):
                time.sleep(0.01)
            assert held.exists()
            with serving("--backend", "http://127.0.0.1:9", *TWO) as (third, _):
                assert held not in tmp_path.iterdir()
                assert samples(url)
                for each in (other, third):
                    each.terminate()
                    assert each.wait(20) == 0
    assert list(tmp_path.iterdir()) == []


def test_what_is_none_of_theirs_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    beginning, link, file = (tmp_path / f"toolgraft-{name}-counts" for name in ("beginning", "link", "file"))
    elsewhere.mkdir()
    (elsewhere / HELD).touch()
    beginning.mkdir()
    link.symlink_to(elsewhere)
    file.touch()
    left = tmp_path / "toolgraft-left-counts"
    left.mkdir()
    (left / HELD).touch()
    with counting_together():
        assert Path(os.environ[COUNTERS]).parent == tmp_path
    assert {each.name for each in tmp_path.iterdir()} == {elsewhere.name, beginning.name, link.name, file.name}
    assert list(elsewhere.iterdir())


def test_the_inspector_needs_one() -> None:
    with serving("--backend", "http://127.0.0.1:9", *TWO) as (_, url):
        error = get(url + "/inspector").json()["error"]
        assert (error["code"], "needs one worker" in error["message"]) == ("inspector_off", True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--local"], "The embedded model needs no more than one worker."),
        (["--backend", "http://b", "--max-concurrent", "1"], "not each of 2 workers can have one"),
        (["--backend", "http://b", "--inspector", "on"], "The inspector needs one worker"),
    ],
)
def test_what_several_cannot_do_is_told(options: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["serve", "--port", "0", "--workers", "2", *options])
    assert result.exit_code == 1
    assert words in result.output
    assert result.output.count("\n") == 1
