"""Calls that may fail, to a judge or another model: asked again with growing pauses, held while it is down.

Back-off   before try n + 1: uniform(0, min(30 s, 1 s * 2^(n - 1))) ("full jitter"), or what Retry-After asks for.
Breaker    the judge counts as down when money is spent (402), or when `outage_after` answers in a row were given up for
           reasons of the service. A comparison is given up for good only if the judge has answered another one since:
           until then it is asked again, so that an outage costs no comparison.
           `pause`: every caller waits, and they take turns at looking, one call every `pause_s`, each with its own
           comparison; one that failed twice is looked for with a known question in turn, since a comparison that
           always fails must not hold up the run. The first answer lets all go on. `stop`: JudgeOutage for every caller.

All waiting is on one condition, so that it ends at once when the run is told to stop. The jitter has a random generator
of its own: the trainer seeds Python's to make a step repeatable.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Generic, TypeVar

from render.errors import UserError
from reward.faults import Fault
from reward.settings import VlmSettings

Reply = TypeVar("Reply")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
OWN_LOOKS = 2  # failed looks with a comparison after which every other one is with the known question


class JudgeOutage(UserError):
    """The judge does not answer, and the run must not wait for it. What was answered so far is in the cache."""


@dataclass(frozen=True)
class Totals:
    """What a judge has done so far; a step's share is the difference of two.

    calls: requests sent = answers + sum of faults. answers: replies that were used. cached: answers that cost nothing.
    retries: calls after the first for the same answer. missing: comparisons (both orders of one pair) left without a
    value. tokens and cost: of every reply, usable or not. waited_s: in outages. faults: by kind; "mass" is a reply in
    which the two letters held under half of the probability.
    """

    calls: int = 0
    answers: int = 0
    cached: int = 0
    retries: int = 0
    missing: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    outages: int = 0
    waited_s: float = 0.0
    faults: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Totals) -> Totals:
        return self._with(other, 1)

    def __sub__(self, earlier: Totals) -> Totals:
        return self._with(earlier, -1)

    def _with(self, other: Totals, sign: int) -> Totals:
        numbers = {
            entry.name: getattr(self, entry.name) + sign * getattr(other, entry.name)
            for entry in fields(self)
            if entry.name != "faults"
        }
        kinds = dict.fromkeys([*self.faults, *other.faults])
        faults = {kind: self.faults.get(kind, 0) + sign * other.faults.get(kind, 0) for kind in kinds}
        return Totals(**numbers, faults={kind: count for kind, count in faults.items() if count})


class Meter:
    """The running counts behind Totals, shared by all threads."""

    def __init__(self, price_in: float, price_out: float) -> None:
        self.prices = price_in, price_out
        self.lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.waited_s = 0.0

    def add(self, **counts: int) -> None:
        with self.lock:
            self.counts.update(counts)

    def fault(self, kind: str, tokens: tuple[int, int] = (0, 0)) -> None:
        with self.lock:
            self.faults[kind] += 1
            self.counts.update(tokens_in=tokens[0], tokens_out=tokens[1])

    def waited(self, seconds: float) -> None:
        with self.lock:
            self.waited_s += seconds

    def totals(self, waiting_s: float = 0.0) -> Totals:
        with self.lock:
            counts, faults, waited = dict(self.counts), dict(self.faults), self.waited_s
        tokens_in, tokens_out = counts.get("tokens_in", 0), counts.get("tokens_out", 0)
        cost = (tokens_in * self.prices[0] + tokens_out * self.prices[1]) / 1e6
        return Totals(**counts, cost=cost, waited_s=waited + waiting_s, faults=faults)


class Line(Generic[Reply]):
    """The line to one judge, or to whatever model `who` names. `call` may be used by several threads at once.

    on_wait(text): one line for a person whenever the run begins to wait, still waits, or goes on.
    known: asks a question that any working model answers; what it and `send` return is neither None nor a Fault.
    pause_scale: the unit of the back-off in seconds; tests make it small.
    """

    def __init__(
        self,
        title: str,
        settings: VlmSettings,
        meter: Meter,
        known: Callable[[], Reply],
        on_wait: Callable[[str], None],
        pause_scale: float = 1.0,
        who: str = "judge",
    ) -> None:
        self.title = title
        self.settings = settings
        self.meter = meter
        self.known = known
        self.on_wait = on_wait
        self.pause_scale = pause_scale
        self.who = who
        self.random = random.Random()
        self.changed = threading.Condition()
        self.answered = 0
        self.given_up = 0
        self.down_since: float | None = None
        self.down_text = ""
        self.next_look = 0.0
        self.looking = False
        self.waiting: deque[object] = deque()
        self.stop_text: str | None = None
        self.closed = False

    def call(self, send: Callable[[], Reply]) -> Reply:
        """The answer of `send`, asked as often as it takes. Raises Fault (given up) or JudgeOutage."""
        looks, proved = 0, False
        while True:
            looking = self._admit()
            other = looking and looks >= OWN_LOOKS and (looks - OWN_LOOKS) % 2 == 0
            looks += looking
            try:
                found, answered = self._try(self.known if other else send, 1 if looking else self.settings.tries)
            except BaseException:
                if looking:
                    self._looked(None)
                raise
            if found is not None and not isinstance(found, Fault):
                self._worked(1)
                if not other:
                    return found
                proved = True
            elif looking:
                self._looked(found)
            elif found is not None and (not found.of_service or proved or self._gave_up(found, answered)):
                raise found

    def once(self, send: Callable[[], Reply]) -> Reply:
        """The same without waiting for an outage to end: for a first question, when there is nothing to lose yet."""
        found, _ = self._try(send, self.settings.tries)
        if found is not None and not isinstance(found, Fault):
            return found
        raise found or JudgeOutage(f"the {self.who} {self.title} was closed")

    def _try(self, send: Callable[[], Reply], tries: int) -> tuple[Reply | Fault | None, int]:
        """The answer, the fault of the last try, or None where an outage came between two tries; and how many answers
        there had been when the last try began."""
        for attempt in range(tries):
            answered = self.answered
            self.meter.add(calls=1, retries=int(attempt > 0))
            try:
                return send(), answered
            except Fault as fault:
                self.meter.fault(fault.kind, fault.tokens)
                if not fault.again or attempt + 1 == tries:
                    return fault, answered
                if not self._pause(attempt, fault.after_s):
                    return None, answered
        raise AssertionError("tries is at least 1")

    def _pause(self, attempt: int, after_s: float | None) -> bool:
        """Wait before the next try; False if there is no point in one, because the judge is down or the line closed."""
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt) * self.pause_scale
        seconds = self.random.uniform(0.0, longest)
        if after_s is not None:
            seconds = after_s + self.random.uniform(0.0, FIRST_PAUSE_S * self.pause_scale)
        with self.changed:
            return not self.changed.wait_for(lambda: self.closed or self.down_since is not None, seconds)

    def _admit(self) -> bool:
        """Wait while the judge is down. True: it is still down, and this call is the one that looks."""
        ticket = object()
        with self.changed:
            try:
                while True:
                    if self.closed:
                        raise JudgeOutage(f"the {self.who} {self.title} was closed")
                    if self.down_since is None:
                        return False
                    if self.stop_text is not None:
                        raise JudgeOutage(
                            f"the {self.who} {self.title} is down ({self.down_text}) and the run was told to stop: "
                            f"{self.stop_text}"
                        )
                    if self.settings.on_outage == "stop":
                        raise JudgeOutage(self._advice())
                    if ticket not in self.waiting:
                        self.waiting.append(ticket)
                    left = self.next_look - time.monotonic()
                    if not self.looking and left <= 0 and self.waiting[0] is ticket:
                        self.looking = True
                        return True
                    self.changed.wait(None if self.looking or left <= 0 else left)
            finally:
                if ticket in self.waiting:
                    self.waiting.remove(ticket)
                    self.changed.notify_all()

    def _advice(self) -> str:
        what = "buy credits" if self.down_text.startswith("402") else "see to it"
        return (
            f"the {self.who} {self.title} is down: {self.down_text}; {what} and resume the run: every answer so far is "
            f'kept in {self.settings.cache} (or let it wait by itself: [reward.vlm] on_outage = "pause")'
        )

    def _gave_up(self, fault: Fault, answered: int) -> bool:
        """Note an answer given up. True: for good, since the judge has answered others; False: ask again."""
        with self.changed:
            if self.down_since is not None:
                return False
            if self.answered > answered and not fault.out_of_credit:
                return True
            self.given_up += 1
            if not fault.out_of_credit and self.given_up < self.settings.outage_after:
                return False
            self.down_since = time.monotonic()
            self.down_text = fault.text
            self.next_look = self.down_since + self.settings.pause_s
            self.changed.notify_all()
            waits = self.settings.on_outage == "pause" and self.stop_text is None
        self.meter.add(outages=1)
        if waits:
            self.on_wait(f"{self.who} down: {fault.text}; looking again in {self.settings.pause_s:g} s")
        return False

    def _looked(self, fault: Fault | None) -> None:
        """End a look without an answer. A fault that is not of the service shows that the judge is back."""
        if fault is not None and not fault.of_service:
            self._worked(0)
            return
        text = ""
        with self.changed:
            self.looking = False
            self.next_look = time.monotonic() + self.settings.pause_s
            if fault is not None and self.down_since is not None:
                self.down_text = fault.text
                text = f"{self.who} down for {time.monotonic() - self.down_since:.0f} s: {fault.text}; "
                text += f"looking again in {self.settings.pause_s:g} s"
            self.changed.notify_all()
        if text:
            self.on_wait(text)

    def _worked(self, answers: int) -> None:
        with self.changed:
            self.answered += answers
            self.given_up = 0
            self.looking = False
            since, self.down_since = self.down_since, None
            self.changed.notify_all()
        if since is not None:
            seconds = time.monotonic() - since
            self.meter.waited(seconds)
            self.on_wait(f"{self.who} is back after {seconds:.0f} s")

    def waiting_s(self) -> float:
        """Seconds that the present outage has lasted; 0 if there is none."""
        since = self.down_since
        return 0.0 if since is None else time.monotonic() - since

    def stop(self, reason: str) -> None:
        """From now on no outage is waited for: callers that wait, and later ones, raise JudgeOutage."""
        with self.changed:
            self.stop_text = reason
            self.changed.notify_all()

    def close(self) -> None:
        """Nothing is waited for or sent any more."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
