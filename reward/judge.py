"""The pairwise judge: a candidate beside each reference, in both orders, as one term of the reward.

value    mean over the references of the share that the candidate wins (reward.verdict.combine)
missing  a comparison one of whose orders got no answer is left out, and never counts as lost; with none left the term
         is not scored (None)

Who answers is a back end: a provider or a server (reward.judge_remote), a model in this process (reward.judge_local),
or the stand-in (reward.local). Calls over the network run side by side in a few threads, are asked again when they fail
(reward.calls), and every answer is kept on disk (reward.answers): the same question is never asked twice, not even by
two threads at once. Left out: pairs within a group; the references are the fixed point that steps are compared by.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from render.errors import SetupError
from reward.answers import AnswerStore
from reward.base import Candidate, Reference, Score
from reward.calls import JudgeOutage, Line, Meter, Totals
from reward.faults import Fault
from reward.judge_setup import advice
from reward.local import PoolJudgeStandIn, Study
from reward.pictures import Picture, known_pair, prepared
from reward.settings import RewardSettings, SubjectSettings, VlmSettings
from reward.verdict import LEAST_MASS, Answer, Prompt, combine
from reward.workers import Workers


class BackEnd(Protocol):
    """Whoever answers. name: for people; identity: all that an answer depends on besides question and pictures.

    stand_in: no vision-language model at all. concurrent: several calls at once are of use. image_size: longer side of
    the pictures it gets; 0 = they come as they are.
    """

    name: str
    identity: str
    stand_in: bool
    concurrent: bool
    image_size: int

    def ask(self, first: bytes, second: bytes, prompt: Prompt) -> Answer:
        """One question about two PNG files, sent once. Raises Fault where no answer came back."""
        ...


@dataclass(frozen=True)
class Comparison:
    """A candidate and a reference in both orders.

    value: share that the candidate wins, None if missing (`cause` says why). bias: towards the first place, in logits
    (soft mode). split: both orders named the same place (verdict mode), a visible tie. answers: candidate first,
    candidate second.
    """

    value: float | None
    bias: float | None
    split: bool
    answers: tuple[Answer | None, Answer | None]
    cause: str = ""


class Judge:
    """Term `judge`. `score` and `compare` may be called from several threads at once.

    Both raise JudgeOutage where the judge is down and must not be waited for, UserError where the cache is unusable.
    notes: what a person should know about how the judge works here, one line each. on_wait and pause_scale: see Line.
    """

    name = "judge"

    def __init__(
        self,
        back_end: BackEnd,
        prompt: Prompt,
        settings: VlmSettings,
        store: AnswerStore | None = None,
        on_wait: Callable[[str], None] = lambda text: None,
        pause_scale: float = 1.0,
    ) -> None:
        self.back_end = back_end
        self.stand_in = back_end.stand_in
        self.prompt = prompt
        self.settings = settings
        self.store = store
        self.meter = Meter(settings.price_in, settings.price_out)
        self.line = Line(back_end.name, settings, self.meter, self._ask_known, on_wait, pause_scale)
        self.workers = Workers(settings.concurrency) if back_end.concurrent else None
        self.notes: list[str] = []
        self.lock = threading.Lock()
        self.flights: dict[str, Future[Answer]] = {}

    @property
    def title(self) -> str:
        """Who judges and how, for tables."""
        return self.back_end.name if self.stand_in else f"{self.back_end.name}, {self.prompt.mode}"

    @property
    def parallel(self) -> int:
        """Candidates that are worth judging at the same time: each brings two calls at least."""
        return 1 if self.workers is None else -(-self.settings.concurrency // 2)

    def score(self, candidate: Candidate, references: Sequence[Reference]) -> Score:
        if candidate.painting is None or candidate.painting.png is None:
            return Score(None, cause="there is no painting")
        if not references:
            return Score(None, cause="there is no reference")
        png = candidate.painting.png
        found = self.compare([(png, reference.png) for reference in references])
        named = {reference.name: comparison for reference, comparison in zip(references, found, strict=True)}
        won = {name: comparison.value for name, comparison in named.items() if comparison.value is not None}
        biases = [comparison.bias for comparison in found if comparison.bias is not None]
        reasons = {
            name: [answer.reason if answer else "" for answer in comparison.answers]
            for name, comparison in named.items()
        }
        info = {
            "won": won,
            "orders": {
                name: [answer.first for answer in comparison.answers if answer]
                for name, comparison in named.items()
                if name in won
            },
            "bias": float(np.mean(biases)) if biases else None,
            "split": sum(comparison.split for comparison in found),
            "missing": {name: comparison.cause for name, comparison in named.items() if comparison.value is None},
            "reasons": {name: both for name, both in reasons.items() if any(both)},
        }
        if not won:
            return Score(None, info, cause=found[0].cause)
        return Score(float(np.mean(list(won.values()))), info)

    def compare(self, pairs: Sequence[tuple[bytes, bytes]]) -> list[Comparison]:
        """One comparison for each (candidate, reference), PNG files."""
        tasks = [
            partial(self._answer, first, second, self.line.call)
            for candidate, reference in pairs
            for first, second in ((candidate, reference), (reference, candidate))
        ]
        waiting = tasks if self.workers is None else [self.workers.submit(task).result for task in tasks]
        outcomes = [_outcome(get) for get in waiting]
        found = [self._combine(*outcomes[index : index + 2]) for index in range(0, len(outcomes), 2)]
        self.meter.add(missing=sum(comparison.value is None for comparison in found))
        return found

    def ask_afresh(self, first: bytes, second: bytes) -> float | None:
        """Probability that the first of two PNG files wins, past the cache and not kept; None where no answer came."""
        pictures = [self._picture(png).png for png in (first, second)]
        try:
            answer = self._ask(pictures[0], pictures[1], self.line.call)
        except Fault:
            return None
        return None if _unusable(answer) else answer.first

    def _combine(self, first: Answer | Fault, second: Answer | Fault) -> Comparison:
        faults = [fault for fault in map(_unusable, (first, second)) if fault is not None]
        answers = (_only_answer(first), _only_answer(second))
        if faults:
            return Comparison(None, None, False, answers, f"{faults[0].kind}: {faults[0].text}")
        assert answers[0] is not None
        assert answers[1] is not None
        value, bias = combine(answers[0], answers[1], self.settings.temperature)
        split = bias is None and answers[0].first == answers[1].first and answers[0].first in (0.0, 1.0)
        return Comparison(value, bias, split, answers)

    def _answer(self, first: bytes, second: bytes, call: Callable[..., Answer]) -> Answer:
        """The answer to one pair in one order: known, being asked by another thread, or asked now."""
        if self.store is None:
            return self._ask(first, second, call)
        pictures = [self._picture(png) for png in (first, second)]
        key = self._key(*pictures)
        with self.lock:
            flight = self.flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self.flights[key] = Future()
        if not mine:
            answer = flight.result()
            self.meter.add(cached=1)
            return answer
        try:
            known = self.store.get(key)
            if known is None:
                answer = self._ask(pictures[0].png, pictures[1].png, call)
                self.store.put(key, answer)
            else:
                answer = known
                self.meter.add(cached=1)
            flight.set_result(answer)
            return answer
        except BaseException as error:
            flight.set_exception(error)
            raise
        finally:
            with self.lock:
                del self.flights[key]

    def _picture(self, png: bytes) -> Picture:
        size = self.back_end.image_size
        return prepared(png, size) if size else Picture(png, "")

    def _key(self, first: Picture, second: Picture) -> str:
        question = [self.back_end.identity, self.prompt.mode, self.prompt.version, self.back_end.image_size]
        return hashlib.sha256(json.dumps([*question, first.digest, second.digest]).encode()).hexdigest()

    def _ask(self, first: bytes, second: bytes, call: Callable[..., Answer]) -> Answer:
        if self.stand_in:  # nothing that could fail, and nothing to count
            return self.back_end.ask(first, second, self.prompt)
        return call(lambda: self._counted(self.back_end.ask(first, second, self.prompt)))

    def _counted(self, answer: Answer) -> Answer:
        unusable = _unusable(answer)
        if unusable is not None:
            self.meter.fault(unusable.kind, (answer.tokens_in, answer.tokens_out))
        else:
            self.meter.add(answers=1, tokens_in=answer.tokens_in, tokens_out=answer.tokens_out)
        return answer

    def _ask_known(self) -> Answer:
        """A known pair that was never asked before, so that no cache on the way can answer it."""
        first, second = (self._picture(png).png for png in known_pair(time.time_ns()))
        return self._counted(self.back_end.ask(first, second, self.prompt))

    def probe(self) -> None:
        """Ask about two known pictures, once for each cache. A back end without log-probabilities is asked for verdicts
        from then on, and `notes` says so. Raises SetupError where no answer comes back."""
        if self.stand_in:
            return
        first, second = known_pair()
        if self.prompt.mode == "soft":
            without = self._without_letters(first, second)
            if not without:
                return
            self.notes.append(f"the judge {self.back_end.name} {without}: asked for verdicts instead of letters")
            self.prompt = replace(self.prompt, mode="verdict")
        try:
            self._answer(first, second, self.line.once)
        except Fault as fault:
            raise SetupError(advice(self.back_end.name, fault, self.settings)) from fault

    def _without_letters(self, first: bytes, second: bytes) -> str:
        """Why the back end cannot be asked for letters; empty if it can."""
        told = "gives no log-probabilities"
        try:
            answer = self._answer(first, second, self.line.once)
        except Fault as fault:
            if fault.of_service:
                raise SetupError(advice(self.back_end.name, fault, self.settings)) from fault
            if fault.kind == "no_logprobs" and self.store is not None:
                self.store.put(self._key(self._picture(first), self._picture(second)), Answer(0.5))
            return told if fault.kind == "no_logprobs" else f"refuses to give log-probabilities ({fault.text})"
        if answer.logit is None:
            return told
        if _unusable(answer) is not None:
            self.notes.append(
                f"the judge {self.back_end.name} gives the letters A and B only {answer.mass:.0%} of the probability, "
                'so that many comparisons will be missing: consider [reward.vlm] mode = "verdict"'
            )
        return ""

    def totals(self) -> Totals:
        """What was asked, answered and paid since this judge was built."""
        return self.meter.totals(self.line.waiting_s())

    def stop(self, reason: str) -> None:
        """For a run that is told to stop: no outage is waited for any more (JudgeOutage); calls in flight go on."""
        self.line.stop(reason)

    def close(self) -> None:
        """Whoever still waits for an answer gets JudgeOutage."""
        self.line.close()
        if self.workers is not None:
            self.workers.close(JudgeOutage(f"the judge {self.back_end.name} was closed"))
        with self.lock:
            idle = not self.flights
        if self.store is not None and idle:  # an answer that is still on its way has been paid and must find its place
            self.store.close()


def _outcome(get: Callable[[], Answer]) -> Answer | Fault:
    try:
        return get()
    except Fault as fault:
        return fault


def _only_answer(outcome: Answer | Fault) -> Answer | None:
    return outcome if isinstance(outcome, Answer) else None


def _unusable(outcome: Answer | Fault) -> Fault | None:
    if isinstance(outcome, Fault):
        return outcome
    if outcome.mass is not None and outcome.mass < LEAST_MASS:
        return Fault("mass", f"the letters A and B hold {outcome.mass:.0%} of the probability", of_service=False)
    return None


def build_judge(
    settings: RewardSettings,
    subject: SubjectSettings,
    study: Callable[[], Study],
    on_wait: Callable[[str], None] = lambda text: None,
) -> Judge:
    """The judge that the settings name, asked once to see that it answers. study: called for the stand-in only.

    Raises SetupError (a token, weights or the server missing; the judge does not answer), UserError (its cache).
    """
    vlm = settings.vlm
    prompt = Prompt(vlm.mode, subject.criteria)
    if settings.judge == "stand_in":
        return Judge(PoolJudgeStandIn(study()), prompt, vlm)
    back_end: BackEnd
    if vlm.backend == "transformers":
        from reward.judge_local import TransformersJudge

        back_end = TransformersJudge(vlm)
    else:
        from reward.judge_remote import RemoteJudge

        back_end = RemoteJudge(vlm)
    judge = Judge(back_end, prompt, vlm, AnswerStore(Path(vlm.cache)), on_wait)
    try:
        judge.probe()
    except BaseException:
        judge.close()
        raise
    return judge
