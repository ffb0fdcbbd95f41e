"""One process that owns one Chromium: it takes sketches from a pipe, has them painted and guards the limits.

`render.farm` starts it as a fresh interpreter, in a session of its own, with `main` as its entry. Nothing of the parent
is inherited (no fork), and the parent's main module is not imported again as multiprocessing's spawn would: a trainer
that holds a model on a GPU can start workers at any time, and torch is never loaded here.

Two threads. The main thread starts the browser and paints. The guard reads the pipe and, a few times a second, compares
what the browser has used since the sketch began with the CPU budget, the memory ceiling and the deadline; above any of
them it ends the browser, which makes the main thread's call fail at once. The guard also ends everything when the farm
goes away: end of file on the pipe, or SIGTERM, which the kernel sends when the parent dies.

Left out: retries and what two failures mean together; that is the farm's.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from render.devtools import CrashWatch, page_answers
from render.errors import UserError
from render.painting import Outcome, Painting
from render.processes import (
    Identity,
    alive,
    command_line,
    die_with_parent,
    identify,
    kernel_kills,
    remove_folder,
)
from render.settings import RenderSettings

if TYPE_CHECKING:
    from render.browser import Browser

TICK_S = 0.2
REPORT_S = 2.0
PING_S = 3.0
# A page's process that ends itself after growing met the ceiling of V8's heap (512 MiB, see chromium.py). Samples lag
# behind a heap that fills in half a second, hence a mark far below the ceiling, yet above what a small painting needs:
# a page that ends below it has found no memory on the machine.
HEAP_GROWTH_MB = 64


@dataclass(frozen=True)
class Job:
    """A sketch to paint. fresh: in a browser that has painted nothing before."""

    number: int
    source: str
    seed: int
    fresh: bool


@dataclass(frozen=True)
class Fault:
    """Why an attempt gave no painting. kind: `too_slow` or `too_big` (the sketch), or a key of painting.CAUSES."""

    kind: str
    detail: str


@dataclass(frozen=True)
class Answer:
    """What became of job `number`: a painting or a fault. cpu_s: CPU seconds that the browser spent on it."""

    number: int
    painting: Painting | None
    fault: Fault | None
    cpu_s: float


@dataclass(frozen=True)
class Ready:
    """The browser runs and the worker waits for a job. renewed: empty, `restarted` or `recycled` since the last one."""

    info: dict[str, Any]
    processes: frozenset[Identity]
    renewed: str


@dataclass(frozen=True)
class Processes:
    """The browser's processes as they are now: what is to be ended should the worker die."""

    processes: frozenset[Identity]


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
    _gpu: frozenset[Identity] = frozenset()
    _crashes: CrashWatch | None = None
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
        renewed = ""
        while True:
            assert self._browser is not None
            self._send(Ready(self._browser.info, self._known, renewed))
            renewed = ""
            job = self._jobs.get()
            if (job.fresh and self._paintings) or not alive(self._gpu):
                self._renew()
                renewed = "restarted"
            if not self._attempt(job):
                self._renew()
                renewed = "restarted"
            elif self._paintings >= self.settings.recycle_after or self._used[1] > self.settings.recycle_mb:
                self._renew()
                renewed = "recycled"

    def _renew(self) -> None:
        """Replace the browser by a new one, or tell the farm why there is none and end."""
        # Selenium is imported here so that the farm, which shares this module's messages, starts without it.
        from render.browser import Browser

        if self._browser is not None:
            self._browser.kill()
        self._paintings = 0
        self._browser = Browser(self.settings, self.index, folder=self.folder)
        try:
            self._browser.start()
        except Exception as error:  # noqa: BLE001 - whatever keeps a browser from starting is the farm's to judge
            text = " ".join(str(error).split()) or type(error).__name__
            self._send(StartFailed(text, type(error) if isinstance(error, UserError) else None))
            self._end()
        # A browser that replaces another must paint the same bytes: "auto" is decided once.
        self.settings = replace(self.settings, rasterizer=self._browser.info["rasterizer"])
        pids = self._browser.pids()
        self._known = identify(pids)
        self._gpu = identify(pid for pid in pids if b"--type=gpu-process" in command_line(pid))
        self._crashes = CrashWatch(pids)
        self._used = self._browser.usage()

    def _attempt(self, job: Job) -> bool:
        """Paint `job` and send the answer; whether the browser can go on."""
        assert self._browser is not None
        assert self._crashes is not None
        self._crashes.ended_itself(0.0)
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
        assert self._crashes is not None
        if watch.growth_mb > HEAP_GROWTH_MB and self._crashes.ended_itself(2.0):
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
        elif not alive(self._gpu):
            # The browser starts another one, but the canvas is lost and the page may wait for it for ever.
            watch.fault = Fault("context_lost", "the browser's GPU process ended")
        elif seconds > settings.deadline_s:
            watch.fault = self._overdue(seconds)
        if watch.fault is not None:
            self._browser.kill()

    def _overdue(self, seconds: float) -> Fault:
        """The deadline has passed below the CPU budget: the sketch waits for nothing, or the machine is too slow."""
        assert self._browser is not None
        if page_answers(self._browser.pids(), PING_S):
            return Fault("too_slow", f"never finishes: nothing left to do after {seconds:.0f} s, and still not done")
        return Fault("host_stalled", f"not done after {seconds:.0f} s, and the page does not answer")

    def _report(self) -> None:
        """Tell the farm which processes it would have to end if this one were killed."""
        if self._browser is None:
            return
        processes = identify(self._browser.pids())
        if processes != self._known:
            self._known = processes
            self._send(Processes(processes))

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
