"""One process that owns one Chromium: it takes sketches from a pipe, has them painted and guards the limits.

`render.farm` starts it as a fresh interpreter, in a session of its own, with `main` as its entry. Nothing of the parent
is inherited (no fork), and the parent's main module is not imported again as multiprocessing's spawn would: a trainer
that holds a model on a GPU can start workers at any time, and torch is never loaded here.

Two threads. The main thread starts the browser and paints. The guard reads the pipe and, a few times a second, compares
what the browser has used since the sketch began with the CPU budget, the memory ceiling and the deadline; above any of
them it ends the browser, which makes the main thread's call fail at once. The guard also ends everything when the farm
goes away: end of file on the pipe, or SIGTERM, which the kernel sends when the parent dies. It sends signs of life, by
which the farm tells a slow sketch from a worker that is stuck.

Left out: retries, what two failures mean together, and replacing a browser that has grown old; that is the farm's.
"""

from __future__ import annotations

import math
import os
import queue
import select
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from render.errors import UserError
from render.painting import Outcome, Painting
from render.processes import (
    Identity,
    die_with_parent,
    identify,
    kernel_kills,
    remove_folder,
)
from render.settings import RenderSettings
from render.witness import LocalWitness, Witness

if TYPE_CHECKING:
    from render.browser import Browser

TICK_S = 0.2
REPORT_S = 0.5
PING_S = 1.0  # a page that waits answers in milliseconds


@dataclass(frozen=True)
class Job:
    """A sketch to paint. fresh: in a browser that has painted nothing before."""

    number: int
    source: str
    seed: int
    fresh: bool


@dataclass(frozen=True)
class Fault:
    """Why an attempt gave no painting.

    kind: `too_slow` or `too_big` (the sketch), or a key of painting.CAUSES. noticed: when, on the monotonic clock; the
    deadline itself where that has passed.
    """

    kind: str
    detail: str
    noticed: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class Answer:
    """What became of job `number`: a painting or a fault. cpu_s: CPU seconds that the browser spent on it."""

    number: int
    painting: Painting | None
    fault: Fault | None
    cpu_s: float


@dataclass(frozen=True)
class Ready:
    """The browser runs and the worker waits for a job.

    restarted: the browser was replaced since the last one. due: it has painted enough or grown too much, and should be
    replaced by another worker's.
    """

    info: dict[str, Any]
    processes: frozenset[Identity]
    restarted: bool
    due: bool


@dataclass(frozen=True)
class Alive:
    """A sign of life, sent every REPORT_S."""


@dataclass(frozen=True)
class Processes:
    """What is to be ended should the worker die: the browser's processes as they are now, or its session on a grid."""

    processes: frozenset[Identity]
    session: str = ""


@dataclass(frozen=True)
class StartFailed:
    """No browser could be started; the worker ends after this. mistake: the error's class when a person can mend it."""

    text: str
    mistake: type[UserError] | None


@dataclass
class _Watch:
    """One attempt under guard: what the browser had used when it began, what it used since, the limit it broke."""

    began: float
    cpu_before_s: float
    memory_before_mb: float
    kernel_kills: int
    cpu_s: float = 0.0
    growth_mb: float = 0.0
    fault: Fault | None = None

    def note(self, used: tuple[float, float]) -> None:
        self.cpu_s = max(self.cpu_s, used[0] - self.cpu_before_s)
        self.growth_mb = max(self.growth_mb, used[1] - self.memory_before_mb)


@dataclass
class Worker:
    """The worker's state; `run` never returns. folder: of its browser, removed at the end."""

    connection: Connection
    settings: RenderSettings
    index: int
    folder: Path
    _jobs: queue.SimpleQueue[Job] = field(default_factory=queue.SimpleQueue)
    _sending: threading.Lock = field(default_factory=threading.Lock)
    _watching: threading.Lock = field(default_factory=threading.Lock)
    _watch: _Watch | None = None
    _browser: Browser | None = None
    _witness: Witness | None = None
    _paintings: int = 0
    _used: tuple[float, float] = (0.0, 0.0)
    _known: frozenset[Identity] = frozenset()

    def run(self) -> NoReturn:
        """Start a browser, then paint job after job."""
        signals, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        threading.Thread(target=self._guard, args=(signals,), name="guard", daemon=True).start()
        self._renew()
        restarted = False
        while True:
            assert self._browser is not None
            due = self._paintings >= self.settings.recycle_after or self._used[1] > self.settings.recycle_mb
            if due and self.settings.grid_url:  # a successor beside it would need a slot more
                self._renew()
                due = False
            self._send(Ready(self._browser.info, self._known, restarted, due))
            job = self._jobs.get()
            restarted = (job.fresh and self._paintings > 0) or self._lost() is not None
            if restarted:
                self._renew()
            if not self._attempt(job):
                self._renew()
                restarted = True

    def _renew(self) -> None:
        """Replace the browser by a new one, or tell the farm why there is none and end."""
        # Selenium is imported here so that the farm, which shares this module's messages, starts without it.
        from render.browser import Browser
        from render.grid import GridBrowser

        if self._browser is not None:
            self._browser.kill()
        self._paintings = 0
        remote = GridBrowser(self.settings, self.index) if self.settings.grid_url else None
        self._browser = remote or Browser(self.settings, self.index, folder=self.folder)
        try:
            self._browser.start()
        except Exception as error:  # noqa: BLE001 - whatever keeps a browser from starting is the farm's to judge
            text = " ".join(str(error).split()) or type(error).__name__
            self._send(StartFailed(text, type(error) if isinstance(error, UserError) else None))
            self._end()
        # A browser that replaces another must paint the same bytes: "auto" is decided once.
        self.settings = replace(self.settings, rasterizer=self._browser.info["rasterizer"])
        self._known = identify(self._browser.pids())
        self._witness = remote or LocalWitness(self._browser.pids)
        if remote is not None:
            self._send(Processes(self._known, remote.info["session"]))
        self._used = self._browser.usage()

    def _attempt(self, job: Job) -> bool:
        """Paint `job` and send the answer; whether the browser can go on."""
        assert self._browser is not None
        assert self._witness is not None
        self._witness.filled_heap(math.inf, 0.0)  # crashes until now do not count
        watch = _Watch(time.monotonic(), *self._used, kernel_kills())
        with self._watching:
            self._watch = watch
        painting, fault = self._paint(self._browser, job)
        with self._watching:
            self._watch = None
        self._paintings += 1
        if painting is not None and painting.outcome is Outcome.UNSCORED:
            fault = Fault(painting.reason, painting.detail)
            painting = None
        if painting is not None:
            self._used = self._browser.usage()
            watch.note(self._used)
        else:
            fault = self._explain(watch, fault)
        self._send(Answer(job.number, painting, fault, watch.cpu_s))
        return painting is not None and watch.fault is None

    def _paint(self, browser: Browser, job: Job) -> tuple[Painting | None, Fault | None]:
        from render.browser import BrowserLost

        try:
            return browser.paint(job.source, job.seed), None
        except BrowserLost as error:
            return None, Fault(error.cause, " ".join(str(error).split()))
        except Exception as error:  # noqa: BLE001 - an error of ours leaves the sketch unscored and the farm alive
            traceback.print_exc()
            return None, Fault("page_lost", f"{type(error).__name__}: {error}")

    def _explain(self, watch: _Watch, fault: Fault | None) -> Fault:
        """The fault that counts: a limit that the guard saw broken, else the kernel's, else what the browser says."""
        if watch.fault is not None:
            return watch.fault
        assert fault is not None
        if kernel_kills() > watch.kernel_kills:
            return Fault("no_memory", "the kernel ended a process because the machine ran out of memory")
        assert self._witness is not None
        if self._witness.filled_heap(watch.growth_mb, 2.0):
            return Fault("too_big", "the page filled the heap that JavaScript is given")
        return fault

    def _guard(self, signals: int) -> NoReturn:
        reported = 0.0
        try:
            while True:
                for ready in wait([self.connection, signals], timeout=TICK_S):
                    if ready == signals:
                        self._end()
                    self._jobs.put(self.connection.recv())
                with self._watching:
                    if self._watch is not None and self._watch.fault is None:
                        self._measure(self._watch)
                if time.monotonic() - reported > REPORT_S:
                    self._report()
                    reported = time.monotonic()
        except (EOFError, OSError):
            self._end()

    def _measure(self, watch: _Watch) -> None:
        """Note what the sketch under guard has used; end the browser when a limit is broken."""
        assert self._browser is not None
        settings = self.settings
        used = self._browser.usage()
        watch.note(used)
        seconds = time.monotonic() - watch.began
        if used[1] > settings.memory_mb:
            watch.fault = Fault("too_big", f"the browser grew to {used[1]:.0f} of {settings.memory_mb} MiB")
        elif watch.cpu_s > settings.cpu_budget_s:
            watch.fault = Fault("too_slow", f"used {watch.cpu_s:.1f} of {settings.cpu_budget_s:g} CPU seconds")
        elif lost := self._lost():
            watch.fault = Fault(*lost)
        elif seconds > settings.deadline_s:
            watch.fault = replace(self._overdue(seconds), noticed=watch.began + settings.deadline_s)
        if watch.fault is not None:
            self._browser.kill()

    def _lost(self) -> tuple[str, str] | None:
        return None if self._witness is None else self._witness.lost()

    def _overdue(self, seconds: float) -> Fault:
        """The deadline has passed below the CPU budget: the sketch waits for nothing, or the machine is too slow."""
        assert self._witness is not None
        if self._witness.stopped():
            return Fault("host_stalled", f"not done after {seconds:.0f} s, and a process of the browser is stopped")
        if self._witness.page_answers(PING_S):
            return Fault("too_slow", f"never finishes: nothing left to do after {seconds:.0f} s, and still not done")
        return Fault("host_stalled", f"not done after {seconds:.0f} s, and the page does not answer")

    def _report(self) -> None:
        """Tell the farm which processes it would have to end if this one were killed, and that it lives."""
        if not select.select([], [self.connection], [], 0.0)[1]:
            # The farm does not listen at present; the guard must not wait for it.
            return
        processes = self._known if self._browser is None else identify(self._browser.pids())
        self._send(Alive() if processes == self._known else Processes(processes))
        self._known = processes

    def _send(self, message: object) -> None:
        try:
            with self._sending:
                self.connection.send(message)
        except OSError:
            self._end()

    def _end(self) -> NoReturn:
        """End the browser and this process; from any thread, whatever the other one is doing."""
        try:
            if self._browser is not None:
                self._browser.kill()
            remove_folder(self.folder)
        finally:
            os._exit(0)


def main() -> None:
    """Entry of the worker process: arguments are its pipe's file descriptor, its parent's pid and the folder."""
    descriptor, parent, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # Ctrl-C in a terminal is the parent's to decide on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # chromedriver must not hold the pipe open: its end of file is how either side learns of the other's death.
    os.set_inheritable(descriptor, False)
    connection: Connection = Connection(descriptor)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        die_with_parent(parent)
        settings, index = connection.recv()
        Worker(connection, settings, index, folder).run()
    except EOFError:
        return
    finally:
        remove_folder(folder)
