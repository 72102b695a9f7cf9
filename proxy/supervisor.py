"""Several processes at the same work: started, watched, replaced when they die, told to reload and to end.

uvicorn has a supervisor too. To reload it ends its workers, and with them the streams that they serve.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import TypeAlias

from proxy.core.errors import ConfigError
from proxy.telemetry import logger
from proxy.terminal import Terminal

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

MARGIN = 5.0
"""Seconds beyond their own limit that workers have to end, before they are killed."""

LONGEST_PAUSE = 30.0
"""Seconds before another try, at most."""

Work: TypeAlias = Callable[[int, Callable[[], None], Connection], None]
"""What a worker does: given its place, what to call once it is ready, and what can be read when the parent is gone."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A process that has been started, with settings of that ``revision``. ``starting`` is None once it is ready."""

    place: int
    process: ForkProcess
    starting: Connection | None
    started: float
    revision: int

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self.process.pid is not None:
            os.kill(self.process.pid, number)


@dataclass(slots=True)
class Supervisor:
    """Keeps ``count`` processes at ``work``, until this one gets SIGTERM or SIGINT.

    ``reload`` is called on SIGHUP: if it returns True, every worker gets that signal. ``ready`` is called once all of
    them are, ``ended`` with the id of each process that is no more. ``patience`` gives the seconds that workers may
    take to end. A worker that dies is replaced: at once if it was ``steady`` seconds old, else after a ``pause`` that
    doubles each time; after ``most_deaths`` early ones in a row there is no use in another try.
    """

    count: int
    work: Work
    reload: Callable[[], bool]
    ready: Callable[[], None]
    ended: Callable[[int], None]
    patience: Callable[[], float]
    steady: float = 10.0
    pause: float = 0.5
    most_deaths: int = 6
    _workers: list[_Worker] = field(default_factory=list)
    _due: dict[int, float] = field(default_factory=dict)  # when which place is to get its next worker
    _deaths: Counter[int] = field(default_factory=Counter)  # early ones in a row, by place
    _told: list[int] = field(default_factory=list)
    _revision: int = 0
    _was_ready: bool = False

    def run(self) -> None:
        """Return when all have ended as they were told to. Raises ``ConfigError`` when they cannot be kept alive."""
        terminal = Terminal()
        alive, held = multiprocessing.Pipe(duplex=False)
        with self._listening() as woken, alive, held:
            self._due = dict.fromkeys(range(self.count), 0.0)
            try:
                while not self._is_told_to_end(terminal):
                    for place in [place for place, due in self._due.items() if due <= time.monotonic()]:
                        del self._due[place]
                        self._start(place, alive, held)
                    self._wait(woken)
            finally:
                self._end(woken)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[int]:
        """Take signals. What is given can be read when one has come."""
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        before = {number: signal.signal(number, lambda number, _: self._told.append(number)) for number in SIGNALS}
        before_wake = signal.set_wakeup_fd(wake)
        try:
            yield woken
        finally:
            signal.set_wakeup_fd(before_wake)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(woken)
            os.close(wake)

    def _is_told_to_end(self, terminal: Terminal) -> bool:
        """Reload if a signal says so; whether one says to end."""
        told, self._told = set(self._told), []
        if signal.SIGHUP in told and not terminal.is_gone():
            told.remove(signal.SIGHUP)
            if self.reload():
                self._revision += 1
                for worker in self._workers:
                    self._bring_up_to_date(worker)
        return bool(told)

    def _start(self, place: int, alive: Connection, held: Connection) -> None:
        starting, ready = multiprocessing.Pipe(duplex=False)

        def begin() -> None:
            held.close()
            signal.set_wakeup_fd(-1)
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.setpgrp()  # a terminal's Ctrl-C is for the parent, which tells every worker once
            self.work(place, lambda: ready.send(True), alive)

        process = multiprocessing.get_context("fork").Process(target=begin)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child knows what to do with them
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            ready.close()
        self._workers.append(_Worker(place, process, starting, time.monotonic(), self._revision))

    def _wait(self, woken: int) -> None:
        """Wait until a signal comes, a worker is ready or dies, or the next one is due."""
        starting = {worker.starting: worker for worker in self._workers if worker.starting}
        running = {worker.process.sentinel: worker for worker in self._workers}
        pause = max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None
        happened = wait([woken, *starting, *running], pause)
        _drain(woken)
        for each, worker in starting.items():
            if each in happened:
                self._begun(worker, each)
        for sentinel, worker in running.items():
            if sentinel in happened:
                self._died(worker)

    def _begun(self, worker: _Worker, starting: Connection) -> None:
        """A worker is ready, or died before it was."""
        worker.starting = None
        with starting, contextlib.suppress(EOFError):
            starting.recv()
            self._bring_up_to_date(worker)
            if not self._was_ready and not any(each.starting for each in self._workers):
                self._was_ready = True
                self.ready()

    def _bring_up_to_date(self, worker: _Worker) -> None:
        """Let a worker reload that began with older settings. One that has only begun to start is told later."""
        if worker.starting is None and worker.revision < self._revision:
            worker.revision = self._revision
            worker.send(signal.SIGHUP)

    def _died(self, worker: _Worker) -> None:
        """See when there will be another one. Raises ``ConfigError`` when there is no use in that."""
        code = self._bury(worker)
        early = time.monotonic() - worker.started < self.steady
        deaths = self._deaths[worker.place] = self._deaths[worker.place] + 1 if early else 0
        if not self._was_ready:
            raise ConfigError(f"A worker ended before it could serve ({code}). The log above has the reason.")
        if deaths >= self.most_deaths:
            raise ConfigError(f"A worker ended {deaths} times in a row ({code}). The log above has the reason.")
        pause = min(self.pause * 2 ** (deaths - 1), LONGEST_PAUSE) if early else 0.0
        self._due[worker.place] = time.monotonic() + pause
        logger.error("worker %d ended (%s); there will be another one in %g s", worker.place + 1, code, pause)

    def _bury(self, worker: _Worker) -> str:
        """Forget a process that has ended. Returns how it did."""
        self._workers.remove(worker)
        worker.process.join()
        self.ended(worker.process.pid or 0)
        code = worker.process.exitcode or 0
        worker.process.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _end(self, woken: int) -> None:
        """Let the workers end: at once when there is another SIGINT, or when it takes them too long."""
        for worker in self._workers:
            worker.send(signal.SIGTERM)
        deadline = time.monotonic() + self.patience() + MARGIN
        while running := {worker.process.sentinel: worker for worker in self._workers}:
            left = deadline - time.monotonic()
            if left <= 0 or signal.SIGINT in self._told:
                left = 1.0
                for worker in running.values():
                    worker.process.kill()
            ended = wait([woken, *running], left)
            _drain(woken)
            for sentinel, worker in running.items():
                if sentinel in ended:
                    self._bury(worker)


def _drain(woken: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(woken, 4096)
