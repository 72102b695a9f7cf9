"""Workers that write to a file what happens to them, below a supervisor in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = """
import os, signal, sys, threading, time
from multiprocessing.connection import wait
from proxy.core.errors import ConfigError
from proxy.supervisor import Supervisor

def note(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def work(place, ready, alive):
    {work}

supervisor = Supervisor(
    2,
    work,
    reload=lambda: bool(note("reload")) or {reloads},
    ready=lambda: note("all ready"),
    ended=lambda pid: note("ended", pid),
    patience=lambda: {patience},
    steady=60.0,
    pause=0.01,
    most_deaths=3,
)
note("parent", os.getpid())
try:
    supervisor.run()
except ConfigError as error:
    note("error", error.message)
note("over")
"""

STEADY = """
    signal.signal(signal.SIGHUP, lambda *_: note("told", place))
    ready()
    note("ready", place, os.getpid())
    wait([alive])
    note("orphan", place)
"""


class Lines:
    """What a supervisor and its workers wrote."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[str] = []

    def until(self, wanted: Callable[[list[str]], bool]) -> None:
        """Read on until ``wanted`` of all that was written."""
        assert self.process.stdout
        while not wanted(self.seen):
            line = self.process.stdout.readline()
            assert line, self.seen
            self.seen.append(line.strip())

    def count(self, start: str) -> int:
        return sum(line.startswith(start) for line in self.seen)

    def wait_for(self, start: str, count: int = 1) -> None:
        self.until(lambda seen: self.count(start) >= count)

    def pids(self) -> list[int]:
        """Of the workers that became ready, in that order."""
        return [int(line.split()[2]) for line in self.seen if line.startswith("ready")]


@contextmanager
def supervised(work: str = STEADY, reloads: bool = True, patience: float = 20.0) -> Iterator[Lines]:
    program = PROGRAM.format(work=work.strip(), reloads=reloads, patience=patience)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Lines(process)
    finally:
        process.kill()
        process.communicate()


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text()


def test_workers_begin_and_end_together() -> None:
    with supervised() as lines:
        lines.wait_for("all ready")
        lines.wait_for("ready", 2)
        lines.process.send_signal(signal.SIGTERM)
        lines.wait_for("over")
        assert lines.count("ended") == 2
        assert lines.process.wait(20) == 0
        assert not any(map(is_there, lines.pids()))


def test_one_that_dies_is_replaced() -> None:
    with supervised() as lines:
        lines.wait_for("ready", 2)
        lines.wait_for("all ready")
        first = lines.pids()[0]
        os.kill(first, signal.SIGKILL)
        lines.wait_for(f"ended {first}")
        lines.wait_for("ready", 3)
        assert len(set(lines.pids())) == 3
        assert lines.count("all ready") == 1
        places = [line.split()[1] for line in lines.seen if line.startswith("ready")]
        assert places[2] == places[0]


def test_those_that_die_again_and_again_are_given_up() -> None:
    work = """
    ready()
    note("ready", place, os.getpid())
    if place == 1:
        time.sleep(0.05)
        sys.exit(7)
    wait([alive])
    """
    with supervised(work) as lines:
        lines.wait_for("over")
        assert "error A worker ended 3 times in a row (exit code 7). The log above has the reason." in lines.seen
        assert lines.count("ready 1") == 3
        assert not any(map(is_there, lines.pids()))
        assert lines.process.stderr
        assert "worker 2 ended (exit code 7); there will be another one in 0.02 s" in lines.process.stderr.read()


def test_one_that_cannot_even_begin_is_given_up_at_once() -> None:
    with supervised("sys.exit(3)") as lines:
        lines.wait_for("over")
        assert "error A worker ended before it could serve (exit code 3). The log above has the reason." in lines.seen


def test_a_reload_is_for_every_worker() -> None:
    with supervised() as lines:
        lines.wait_for("ready", 2)
        lines.wait_for("all ready")
        lines.process.send_signal(signal.SIGHUP)
        lines.wait_for("told", 2)
        assert lines.count("reload") == 1
        assert {line for line in lines.seen if line.startswith("told")} == {"told 0", "told 1"}


def test_settings_that_cannot_be_used_are_told_to_no_worker() -> None:
    with supervised(reloads=False) as lines:
        lines.wait_for("ready", 2)
        lines.process.send_signal(signal.SIGHUP)
        lines.wait_for("reload")
        lines.process.send_signal(signal.SIGTERM)
        lines.wait_for("over")
        assert lines.count("told") == 0


def test_a_worker_that_is_still_starting_is_told_when_it_is_ready(tmp_path: Path) -> None:
    work = """
    note("begun", place)
    while not os.path.exists(FILE):
        time.sleep(0.005)
    signal.signal(signal.SIGHUP, lambda *_: note("told", place))
    ready()
    wait([alive])
    """
    gate = tmp_path / "gate"
    with supervised(work.replace("FILE", repr(str(gate)))) as lines:
        lines.wait_for("begun", 2)
        lines.process.send_signal(signal.SIGHUP)
        lines.wait_for("reload")
        gate.touch()
        lines.wait_for("told", 2)


STUBBORN = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready()
    note("ready", place, os.getpid())
    while True:
        time.sleep(60)
"""


def test_those_that_do_not_end_in_time_are_killed() -> None:
    with supervised(STUBBORN, patience=-4.9) as lines:  # the margin is on top of it
        lines.wait_for("ready", 2)
        lines.wait_for("all ready")
        lines.process.send_signal(signal.SIGTERM)
        lines.wait_for("over")
        assert not any(map(is_there, lines.pids()))


def test_who_is_interrupted_again_does_not_wait() -> None:
    with supervised(STUBBORN, patience=600) as lines:
        lines.wait_for("ready", 2)
        lines.wait_for("all ready")
        lines.process.send_signal(signal.SIGINT)
        while lines.process.poll() is None:
            lines.process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert not any(map(is_there, lines.pids()))


def test_workers_learn_that_the_parent_is_gone() -> None:
    with supervised() as lines:
        lines.wait_for("ready", 2)
        lines.process.kill()
        lines.wait_for("orphan", 2)
