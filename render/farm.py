"""The render farm: sketches in, paintings out, whatever the sketches do to the browsers.

`Farm` keeps worker processes (see worker.py), each with one warm Chromium, and one supervisor thread that alone touches
them: it starts them one after the other, hands out jobs, collects answers, and replaces what dies. Each worker has its
own pipe, so that a process killed in the middle of a message can harm nothing but itself.

An attempt that gives no painting is made once more, on another worker where there is one, in a fresh browser. What two
failed attempts mean is in `verdict`: only limits that the sketch alone broke, twice, make a rejection; everything else
leaves it unscored.

Left out: judging paintings; browsers on other machines.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from render.errors import FarmError
from render.painting import Outcome, Painting
from render.processes import Identity, alive, identify, kill, kill_all, remove_folder
from render.settings import RenderSettings
from render.worker import Answer, Fault, Job, Processes, Ready, StartFailed

# Failed starts in a row after which a seat no longer counts as alive. A start that fails by itself has had several
# tries inside the worker and counts twice; a worker that is killed has not.
START_ATTEMPTS = 3
START_LIMIT_S = 120.0  # a browser that has not started by then never will
GRACE_S = 20.0  # beyond the deadline that the worker itself enforces
STAGGER_S = 1.0
TICK_S = 0.25
CLOSE_S = 3.0

_COMMAND = ("-P", "-c", "from render.worker import main; main()")
_LIMITS = ("too_slow", "too_big")


def verdict(faults: list[Fault]) -> Painting:
    """What failed attempts mean together: rejected when each broke a limit of the sketch's own, unscored otherwise.

    The reason is that of the last attempt, or of the last one that was the machine's fault when unscored.
    """
    if len(faults) > 1 and all(fault.kind in _LIMITS for fault in faults):
        return Painting(Outcome.REJECTED, faults[-1].kind, f"{faults[-1].detail}, on a second attempt too")
    lost = [fault for fault in faults if fault.kind not in _LIMITS]
    return Painting(Outcome.UNSCORED, lost[-1].kind, lost[-1].detail)


@dataclass
class _Order:
    """A submitted sketch on its way. avoid: the seat that failed it, -1 for none."""

    number: int
    source: str
    seed: int
    future: Future[Painting]
    submitted: float
    waiting_since: float
    waited: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    avoid: int = -1


@dataclass
class _Seat:
    """The place of one worker, and the process that sits there now. state: down, starting, idle or busy."""

    index: int
    state: str = "down"
    since: float = 0.0
    process: subprocess.Popen[bytes] | None = None
    connection: Connection | None = None
    identity: frozenset[Identity] = frozenset()
    browser: frozenset[Identity] = frozenset()
    folder: Path = Path()
    order: _Order | None = None
    failures: int = 0
    fresh: bool = False


class Farm:
    """Browsers that paint sketches. A context manager: entering starts it, leaving closes it."""

    def __init__(self, settings: RenderSettings) -> None:
        self.settings = settings
        count = settings.workers or len(os.sched_getaffinity(0))
        self.counters: dict[str, int] = dict.fromkeys(
            ("painted", "rejected", "unscored", "retries", "restarts", "recycled"), 0
        )
        self.info: dict[str, Any] = {}
        self._seats = [_Seat(index) for index in range(count)]
        self._queue: deque[_Order] = deque()
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._doorbell, self._button = socket.socketpair()
        self._doorbell.setblocking(False)
        self._button.setblocking(False)
        self._opened = threading.Event()
        self._closing = False
        self._failure: Exception | None = None
        self._start_error = ""
        self._next_start = 0.0
        self._supervisor = threading.Thread(target=self._supervise, name="render-farm", daemon=True)

    def start(self) -> None:
        """Start the workers; returns when the first browser is ready, while the others follow.

        Raises SetupError when something is not installed, ConfigError for a method that `brush` does not have,
        FarmError when no browser starts.
        """
        self._supervisor.start()
        try:
            self._opened.wait()
        except BaseException:
            self.close()
            raise
        if self._failure is not None:
            self.close()
            raise self._failure

    def submit(self, source: str, seed: int = 0) -> Future[Painting]:
        """Have a sketch painted; the future's result is a Painting, whatever the sketch does.

        Callbacks of the future run in the supervisor's thread and must be short. Raises FarmError when the farm is
        closed or no browser can be started any more.
        """
        with self._lock:
            if self._failure is not None:
                raise FarmError(str(self._failure))
            if self._closing or not self._opened.is_set():
                raise FarmError("the render farm is not open")
            now = time.monotonic()
            order = _Order(next(self._numbers), source, seed, Future(), now, now)
            self._queue.append(order)
            self._ring()
        return order.future

    def _ring(self) -> None:
        # A full buffer means that the supervisor has been woken already.
        with contextlib.suppress(BlockingIOError):
            self._button.send(b"!")

    def processes(self) -> frozenset[Identity]:
        """The workers and their browsers' processes, as last reported."""
        return frozenset().union(*(seat.identity | seat.browser for seat in self._seats))

    def close(self) -> None:
        """End every browser; sketches not painted yet become unscored (`farm_closed`). Safe to call again."""
        with self._lock:
            first = not self._closing
            self._closing = True
            if first:
                self._ring()
        if self._supervisor.is_alive() and threading.current_thread() is not self._supervisor:
            self._supervisor.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # All that follows runs in the supervisor's thread. Workers are started by it too: the kernel signals a worker when
    # the *thread* that started it ends.

    def _supervise(self) -> None:
        try:
            while not self._closing and self._failure is None:
                self._start_workers()
                self._hand_out()
                self._listen()
                self._check_clocks()
                self._check_hope()
        except BaseException as error:
            self._failure = FarmError(f"the render farm's supervisor failed: {error!r}")
            raise
        finally:
            self._shut_down()

    def _start_workers(self) -> None:
        """Start one worker if one is due; the first alone: it settles the rasterizer and finds what is missing."""
        now = time.monotonic()
        if now < self._next_start:
            return
        for seat in self._seats if self.info else self._seats[:1]:
            if seat.state == "down" and now >= seat.since:
                self._start(seat)
                self._next_start = now + STAGGER_S
                return

    def _start(self, seat: _Seat) -> None:
        ours, theirs = Pipe()
        seat.folder = Path(tempfile.gettempdir()) / f"render-farm-{secrets.token_hex(8)}"
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
        with theirs:
            seat.process = subprocess.Popen(
                (sys.executable, *_COMMAND, str(theirs.fileno()), str(os.getpid()), str(seat.folder)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,
            )
        seat.connection, seat.identity, seat.browser = ours, identify([seat.process.pid]), frozenset()
        seat.state, seat.since = "starting", time.monotonic()
        settings = replace(self.settings, rasterizer=self.info.get("rasterizer", self.settings.rasterizer))
        self._send(seat, (settings, seat.index))

    def _send(self, seat: _Seat, message: object) -> None:
        assert seat.connection is not None
        try:
            seat.connection.send(message)
        except OSError:
            # The worker is dead; its pipe says so to `_listen`, where the seat is cleared.
            return

    def _hand_out(self) -> None:
        with self._lock:
            for order in list(self._queue):
                seat = self._seat_for(order)
                if seat is None:
                    continue
                self._queue.remove(order)
                if not order.faults and not order.future.set_running_or_notify_cancel():
                    continue
                now = time.monotonic()
                order.waited += now - order.waiting_since
                seat.state, seat.since, seat.order, seat.fresh = "busy", now, order, bool(order.faults)
                self._send(seat, Job(order.number, order.source, order.seed, seat.fresh))

    def _seat_for(self, order: _Order) -> _Seat | None:
        idle = [seat for seat in self._seats if seat.state == "idle"]
        others = [seat for seat in idle if seat.index != order.avoid]
        if others or not idle:
            return others[0] if others else None
        coming = any(seat.index != order.avoid and not seat.failures and seat.process for seat in self._seats)
        return None if coming else idle[0]

    def _listen(self) -> None:
        pipes: dict[object, _Seat] = {seat.connection: seat for seat in self._seats if seat.connection is not None}
        for ready in wait([self._doorbell, *pipes], timeout=TICK_S):  # type: ignore[list-item]
            if ready is self._doorbell:
                self._doorbell.recv(4096)
                continue
            seat = pipes[ready]
            assert seat.connection is not None
            try:
                message = seat.connection.recv()
            except (EOFError, OSError):
                self._lose(seat, Fault("browser_died", "the worker process ended"))
            else:
                self._hear(seat, message)

    def _hear(self, seat: _Seat, message: object) -> None:
        now = time.monotonic()
        match message:
            case Ready(info, processes, renewed):
                seat.state, seat.since, seat.failures, seat.browser = "idle", now, 0, processes
                if renewed:
                    self.counters["recycled" if renewed == "recycled" else "restarts"] += 1
                self.info = self.info or {**info, "workers": len(self._seats)}
                self._next_start = now
                self._opened.set()
            case Processes(processes):
                seat.browser = processes
            case Answer(_, painting, fault, cpu_s):
                order, seat.order = seat.order, None
                # Not idle before it says so: its browser may have to be replaced.
                seat.state, seat.since = "starting", now
                assert order is not None
                if painting is not None:
                    self._finish(order, painting, seat.index, len(order.faults) + 1, cpu_s)
                else:
                    assert fault is not None
                    self._fail(order, fault, seat.index, cpu_s)
            case StartFailed(text, mistake):
                # What has never worked on this machine will not; nor will what a person has to mend.
                seat.failures += 2 if self.info and mistake is None else START_ATTEMPTS
                self._start_error = text
                if mistake and not self.info:
                    self._failure = mistake(text)
                if seat.order is not None:
                    # It was still waiting for a fresh browser: no attempt was made.
                    self._requeue(seat.order)
                    seat.order = None
                self._clear(seat)

    def _lose(self, seat: _Seat, fault: Fault) -> None:
        """A worker is gone or has to go: end what is left of it and try its job again."""
        order, seat.order = seat.order, None
        if order is not None:
            self._fail(order, fault, seat.index, 0.0)
        if seat.state == "starting":
            seat.failures += 1
            self._start_error = fault.detail
        self.counters["restarts"] += 1
        self._clear(seat)

    def _clear(self, seat: _Seat) -> None:
        assert seat.process is not None
        assert seat.connection is not None
        seat.connection.close()
        # The worker first, alone: its guardian then ends the browser and removes the folder, even if this process is
        # killed in the meantime.
        kill(seat.identity)
        limit = time.monotonic() + CLOSE_S
        while (seat.folder.exists() or alive(seat.browser)) and time.monotonic() < limit:
            time.sleep(0.005)
        kill_all(seat.browser)
        # SIGKILL has been sent: this only collects the process.
        seat.process.wait()
        remove_folder(seat.folder)
        seat.process, seat.connection = None, None
        seat.identity = seat.browser = frozenset()
        seat.state, seat.since = "down", time.monotonic() + (0.5 * 2**seat.failures if seat.failures else 0.0)

    def _check_clocks(self) -> None:
        """The backstop outside the workers: one that neither answers nor starts in time is ended."""
        now = time.monotonic()
        for seat in self._seats:
            if seat.state == "busy":
                limit = self.settings.deadline_s + GRACE_S + (START_LIMIT_S if seat.fresh else 0.0)
                if now - seat.since > limit:
                    self._lose(seat, Fault("host_stalled", f"the worker gave no answer in {limit:.0f} s"))
            elif seat.state == "starting" and now - seat.since > START_LIMIT_S:
                self._lose(seat, Fault("host_stalled", f"no browser in {START_LIMIT_S:.0f} s"))

    def _check_hope(self) -> None:
        """Give up when no seat can get a browser."""
        tried = self._seats if self.info else self._seats[:1]
        if self._failure is None and all(seat.failures >= START_ATTEMPTS for seat in tried):
            self._failure = FarmError(f"no browser could be started: {self._start_error}")

    def _requeue(self, order: _Order) -> None:
        order.waiting_since = time.monotonic()
        with self._lock:
            self._queue.appendleft(order)

    def _fail(self, order: _Order, fault: Fault, worker: int, cpu_s: float) -> None:
        """Count a failed attempt: the first is tried again, the second is final."""
        order.faults.append(fault)
        if len(order.faults) == 1:
            self.counters["retries"] += 1
            order.avoid = worker
            self._requeue(order)
        else:
            self._finish(order, verdict(order.faults), worker, len(order.faults), cpu_s)

    def _finish(self, order: _Order, painting: Painting, worker: int, attempt: int, cpu_s: float) -> None:
        timings = {"cpu": cpu_s, **painting.timings}
        timings |= {"queue": order.waited, "total": time.monotonic() - order.submitted}
        self.counters[painting.outcome.value] += 1
        order.future.set_result(replace(painting, timings=timings, worker=worker, attempt=attempt))

    def _shut_down(self) -> None:
        """End every worker and answer every order that is still open."""
        with self._lock:
            self._closing = True
            waiting = list(self._queue)
            self._queue.clear()
        for seat in self._seats:
            if seat.connection is not None:
                # End of file: the worker ends its browser and itself.
                seat.connection.close()
        limit = time.monotonic() + CLOSE_S
        for seat in self._seats:
            if seat.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    seat.process.wait(max(0.0, limit - time.monotonic()))
                self._clear(seat)
        if self._failure is None:
            unpainted = Painting(Outcome.UNSCORED, "farm_closed", "the farm was closed before the sketch was painted")
        else:
            unpainted = Painting(Outcome.UNSCORED, "browser_died", str(self._failure))
        for order in waiting:
            if order.faults or order.future.set_running_or_notify_cancel():
                self._finish(order, unpainted, -1, len(order.faults), 0.0)
        for seat in self._seats:
            if seat.order is not None:
                self._finish(seat.order, unpainted, seat.index, len(seat.order.faults) + 1, 0.0)
        self._opened.set()
