"""The render farm: sketches in, paintings out, whatever the sketches do to the browsers.

`Farm` keeps worker processes (see worker.py), each with one warm Chromium, and one supervisor thread that alone touches
them: it starts them one after the other, hands out jobs, collects answers, and replaces what dies. Each worker has its
own pipe, so that a process killed in the middle of a message can harm nothing but itself.

Jobs wait in one queue, in which a slow sketch holds back nobody but its own worker. A browser that has painted enough
is replaced without a gap: a second worker starts beside it, one at a time in the whole farm, and takes its seat when
ready. A worker sends signs of life; one that is silent gets no job, and is ended at its job's deadline.

An attempt that gives no painting is made once more, on another worker where there is one, in a fresh browser. What two
failed attempts mean is in `verdict`: only limits that the sketch alone broke, twice, make a rejection; everything else
leaves it unscored.

Left out: judging paintings.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Self

from render.errors import FarmError
from render.hub import Hub
from render.painting import Outcome, Painting
from render.processes import Identity
from render.seat import CLOSE_S, Order, Recovery, Seat
from render.settings import RenderSettings
from render.worker import Alive, Answer, Fault, Job, Processes, Ready, StartFailed

# Failed starts in a row after which a seat no longer counts as alive. A start that fails by itself has had several
# tries inside the worker and counts twice; a worker that is killed has not.
START_ATTEMPTS = 3
STAGGER_S = 1.0
TICK_S = 0.25
SUCCESSOR_PAUSE_S = 5.0  # after a successor that did not start

_LIMITS = ("too_slow", "too_big")


def verdict(faults: list[Fault]) -> Painting:
    """What failed attempts mean together: rejected when each broke a limit of the sketch's own, unscored otherwise.

    The reason is that of the last attempt, or of the last one that was the machine's fault when unscored.
    """
    if len(faults) > 1 and all(fault.kind in _LIMITS for fault in faults):
        return Painting(Outcome.REJECTED, faults[-1].kind, f"{faults[-1].detail}, on a second attempt too")
    lost = [fault for fault in faults if fault.kind not in _LIMITS]
    return Painting(Outcome.UNSCORED, lost[-1].kind, lost[-1].detail)


class Farm:
    """Browsers that paint sketches. A context manager: entering starts it, leaving closes it.

    Raises SetupError when `settings.grid_url` names a hub that is not there.
    """

    def __init__(self, settings: RenderSettings) -> None:
        self.settings = settings
        hub = Hub(settings.grid_url) if settings.grid_url else None
        places = hub.first_slots(settings.deadline_s).total if hub else len(os.sched_getaffinity(0))
        count = settings.workers or places
        self.counters: dict[str, int] = dict.fromkeys(
            ("painted", "rejected", "unscored", "retries", "restarts", "recycled"), 0
        )
        self.info: dict[str, Any] = {}
        self.recoveries: deque[Recovery] = deque(maxlen=10000)
        self._seats = [Seat(index) for index in range(count)]
        self._queue: deque[Order] = deque()
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._doorbell, self._button = socket.socketpair()
        self._doorbell.setblocking(False)
        self._button.setblocking(False)
        self._opened = threading.Event()
        self._closing = False
        self._failure: Exception | None = None
        self._start_error = ""
        self._next_start = 0.0
        self._next_successor = 0.0
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

        Waits while `queue_limit` sketches wait already, unless called in a future's callback. Callbacks run in the
        supervisor's thread and must be short. Raises FarmError when the farm is closed, also during the wait, or when
        no browser can be started any more.
        """
        with self._lock:
            while True:
                if self._failure is not None:
                    raise FarmError(str(self._failure))
                if self._closing or not self._opened.is_set():
                    raise FarmError("the render farm is not open")
                # The supervisor's thread is the one that makes room.
                if len(self._queue) < self.settings.queue_limit or threading.current_thread() is self._supervisor:
                    break
                self._room.wait()
            now = time.monotonic()
            order = Order(next(self._numbers), source, seed, Future(), now, now)
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

    # All that follows runs in the supervisor's thread.

    def _supervise(self) -> None:
        try:
            while not self._closing and self._failure is None:
                self._start_workers()
                self._hand_out()
                self._listen()
                self._check_clocks()
                self._succeed()
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
                seat.start(self._settled())
                self._next_start = now + STAGGER_S
                return

    def _settled(self) -> RenderSettings:
        """The settings with the rasterizer that the first browser found: "auto" is decided once."""
        return replace(self.settings, rasterizer=self.info.get("rasterizer", self.settings.rasterizer))

    def _succeed(self) -> None:
        """Replace a browser that is due, and see the worker off whose successor has taken its seat."""
        for seat in [seat for seat in self._seats if seat.state == "leaving" and seat.left()]:
            self._clear(seat)
        now = time.monotonic()
        due = next((seat for seat in self._seats if seat.due and seat.state in ("idle", "busy")), None)
        if due is None or len(self._seats) > self.info["workers"] or now < self._next_successor:
            return
        successor = Seat(due.index, successor_of=due)
        self._seats.append(successor)
        successor.start(self._settled())

    def _take_over(self, seat: Seat) -> None:
        """The successor is ready: the worker before it paints nothing more than what it paints now."""
        predecessor, seat.successor_of = seat.successor_of, None
        if predecessor is not None:
            self.counters["recycled"] += 1
            predecessor.last = True
            if predecessor.state != "busy":
                predecessor.leave()

    def _hand_out(self) -> None:
        with self._lock:
            for order in list(self._queue):
                if not any(seat.state == "idle" for seat in self._seats):
                    return
                seat = self._seat_for(order)
                if seat is None:
                    continue
                self._queue.remove(order)
                self._room.notify()
                if not order.faults and not order.future.set_running_or_notify_cancel():
                    continue
                now = time.monotonic()
                order.waited += now - order.waiting_since
                seat.order, seat.fresh = order, bool(order.faults)
                seat.enter("busy")
                seat.send(Job(order.number, order.source, order.seed, seat.fresh))

    def _seat_for(self, order: Order) -> Seat | None:
        idle = [seat for seat in self._seats if seat.state == "idle" and not seat.silent()]
        others = [seat for seat in idle if seat.index != order.avoid]
        if others or not idle:
            return others[0] if others else None
        coming = [seat for seat in self._seats if seat.process and not seat.failures and not seat.silent()]
        return None if any(seat.index != order.avoid for seat in coming) else idle[0]

    def _listen(self) -> None:
        pipes: dict[object, Seat] = {
            seat.connection: seat for seat in self._seats if seat.connection is not None and seat.state != "leaving"
        }
        for ready in wait([self._doorbell, *pipes], timeout=TICK_S):  # type: ignore[list-item]
            if ready is self._doorbell:
                self._doorbell.recv(4096)
                continue
            seat = pipes[ready]
            assert seat.connection is not None
            if seat.state == "leaving":
                # Its successor has been heard in this very round.
                continue
            try:
                message = seat.connection.recv()
            except (EOFError, OSError):
                self._lose(seat, Fault("browser_died", "the worker process ended"))
            else:
                seat.heard = time.monotonic()
                self._hear(seat, message)

    def _hear(self, seat: Seat, message: object) -> None:
        match message:
            case Alive():
                pass
            case Ready(info, processes, restarted, due):
                seat.failures, seat.browser, seat.due = 0, processes, due
                if seat.lost is not None:
                    self.recoveries.append(Recovery(seat.index, *seat.lost, time.monotonic()))
                    seat.lost = None
                seat.enter("idle")
                self.counters["restarts"] += restarted
                self.info = self.info or {**info, "workers": len(self._seats)}
                self._next_start = seat.since
                self._opened.set()
                self._take_over(seat)
            case Processes(processes, session):
                seat.browser, seat.session = processes, session
            case Answer(_, painting, fault, cpu_s):
                order, seat.order = seat.order, None
                seat.lost = None if fault is None else (seat.since, fault)
                if seat.last:
                    seat.leave()
                else:
                    # Not idle before it says so: its browser may have to be replaced.
                    seat.enter("starting")
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

    def _lose(self, seat: Seat, fault: Fault) -> None:
        """A worker is gone or has to go: end what is left of it and try its job again."""
        order, seat.order = seat.order, None
        if order is not None:
            seat.lost = (seat.since, fault)
            self._fail(order, fault, seat.index, 0.0)
        if seat.state == "starting":
            seat.failures += 1
            self._start_error = fault.detail
        self.counters["restarts"] += 1
        self._clear(seat)

    def _clear(self, seat: Seat) -> None:
        seat.clear()
        successor = next((other for other in self._seats if other.successor_of is seat), None)
        if successor is not None:
            # It was coming anyway: it takes the seat when it is ready.
            successor.successor_of = None
        elif seat.successor_of is not None:
            self._next_successor = time.monotonic() + SUCCESSOR_PAUSE_S
        if successor is not None or seat.successor_of is not None or seat.last:
            self._seats.remove(seat)
        elif seat.failures:
            seat.since += 0.5 * 2**seat.failures

    def _check_clocks(self) -> None:
        """The backstop outside the workers: one that neither answers nor starts in time is ended."""
        for seat in list(self._seats):
            trouble = seat.stuck(self.settings.deadline_s)
            if trouble:
                noticed = min(time.monotonic(), seat.since + self.settings.deadline_s)
                self._lose(seat, Fault("host_stalled", trouble, noticed))

    def _check_hope(self) -> None:
        """Give up when no seat can get a browser."""
        tried = self._seats if self.info else self._seats[:1]
        if self._failure is None and all(seat.failures >= START_ATTEMPTS for seat in tried):
            self._failure = FarmError(f"no browser could be started: {self._start_error}")

    def _requeue(self, order: Order) -> None:
        order.waiting_since = time.monotonic()
        with self._lock:
            self._queue.appendleft(order)

    def _fail(self, order: Order, fault: Fault, worker: int, cpu_s: float) -> None:
        """Count a failed attempt: the first is tried again, the second is final."""
        order.faults.append(fault)
        if len(order.faults) == 1:
            self.counters["retries"] += 1
            order.avoid = worker
            self._requeue(order)
        else:
            self._finish(order, verdict(order.faults), worker, len(order.faults), cpu_s)

    def _finish(self, order: Order, painting: Painting, worker: int, attempt: int, cpu_s: float) -> None:
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
            self._room.notify_all()
        for seat in self._seats:
            if seat.connection is not None:
                seat.leave()
        limit = time.monotonic() + CLOSE_S
        for seat in self._seats:
            if seat.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    seat.process.wait(max(0.0, limit - time.monotonic()))
                seat.clear()
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
