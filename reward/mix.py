"""The whole reward of one candidate: gate, then the weighted sum of the terms, as a float or None.

  gate refuses      reward 0.0, outcome `rejected`; no term is asked
  gate cannot tell  reward None, outcome `unscored` (no painting came back, through no fault of the sketch)
  a paid term None  reward None, outcome `unscored`, with the term and its cause
  otherwise         w_gate * 1 + sum of w_i * value_i, outcome `scored`

A term of weight 0 is asked and logged, and its None voids nothing. A term says "not scored" by Score(None); whatever
it raises is a fault of the program and travels on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from render.errors import SetupError
from reward.base import Candidate, Reference, Score, Term, Verdict
from reward.coverage import Coverage
from reward.gate import Gate
from reward.judge import Judge, Totals, build_judge
from reward.length import Length
from reward.local import PreferenceStandIn, Study
from reward.pool import Pool
from reward.settings import RewardSettings, SubjectSettings


class Mix:
    """Judges candidates. weights: share of `gate` and of each term by name; terms: asked in this order.

    Raises ValueError where a term has no weight or a paid weight has no term.
    """

    def __init__(self, weights: Mapping[str, float], gate: Gate, terms: Sequence[Term]) -> None:
        self.weights = dict(weights)
        self.gate = gate
        self.terms = tuple(terms)
        names = {"gate", *(term.name for term in self.terms)}
        unknown = {name for name, weight in self.weights.items() if weight > 0} - names
        if unknown or names - set(self.weights):
            raise ValueError(f"weights {sorted(self.weights)} and terms {sorted(names)} do not match")

    @property
    def _judge(self) -> Judge | None:
        return next((term for term in self.terms if isinstance(term, Judge)), None)

    @property
    def parallel(self) -> int:
        """Candidates that are worth judging at the same time."""
        return self._judge.parallel if self._judge else 1

    def totals(self) -> Totals:
        """What the judge was asked so far."""
        return self._judge.totals() if self._judge else Totals()

    def stop(self, reason: str) -> None:
        """Nobody waits for a judge that is down any more."""
        if self._judge:
            self._judge.stop(reason)

    def close(self) -> None:
        """Nothing will be judged any more."""
        if self._judge:
            self._judge.close()

    def judge(self, candidate: Candidate, references: Sequence[Reference]) -> Verdict:
        """The verdict; every number in it is the one that the reward was made of."""
        gate = self.gate.check(candidate)
        if gate.outcome == "rejected":
            return Verdict(0.0, "rejected", gate.reason, gate.detail, {"gate": Score(0.0)})
        if gate.outcome == "unscored":
            return Verdict(None, "unscored", gate.reason, gate.detail)
        scores = {"gate": Score(1.0)}
        for term in self.terms:
            scores[term.name] = _checked(term.name, term.score(candidate, references))
        for name, score in scores.items():
            if score.value is None and self.weights[name] > 0:
                return Verdict(None, "unscored", name, score.cause, scores)
        total = math.fsum(self.weights[name] * score.value for name, score in scores.items() if score.value is not None)
        return Verdict(total, "scored", terms=scores)


def _checked(name: str, score: Score) -> Score:
    if score.value is not None and not 0.0 <= score.value <= 1.0:
        raise ValueError(f"term {name} answered {score.value}, which is not in 0..1")
    return score


def display_name(term: Term) -> str:
    """The name that people see: a stand-in is called so wherever it shows."""
    return f"{term.name} (stand-in)" if term.stand_in else term.name


class Absent:
    """A term that is not at hand: it answers None, with the reason, and so the reward stays open where it is paid."""

    stand_in = False

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why

    def score(self, candidate: Candidate, references: Sequence[Reference]) -> Score:
        return Score(None, cause=self.why)


def build_mix(
    settings: RewardSettings,
    subject: SubjectSettings,
    gate: Gate,
    pool: Pool,
    on_note: Callable[[str], None] = lambda text: None,
    absent: Mapping[str, str] | None = None,
) -> Mix:
    """The mix that the settings describe, each scorer loaded and tested.

    on_note(text): a scorer has something to say, at the start (a mode that the judge does not have) or later (it is
    down, it is back). absent: None = every scorer must be here; else those that are known not to be, and why: these,
    and any other that turns out not to be here, become Absent with a note. Raises ConfigError (weights) and SetupError
    (a scorer that is not here or fails its test).
    """
    settings.validate()
    study = cache(lambda: Study(pool))

    def preference() -> Term:
        if settings.preference == "hpsv3":
            from reward.hps import build_hpsv3

            return build_hpsv3(settings.hpsv3, subject.preference_text, pool)
        return PreferenceStandIn(study())

    def judge() -> Term:
        built = build_judge(settings, subject, study, on_note)
        for note in built.notes:
            on_note(note)
        return built

    def at_hand(name: str, build: Callable[[], Term]) -> Term:
        if absent is None:
            return build()
        why = absent.get(name)
        if why is None:
            try:
                return build()
            except SetupError as error:
                why = str(error)
        on_note(f"without {name}: {why}")
        return Absent(name, why)

    terms = (at_hand("preference", preference), at_hand("judge", judge))
    return Mix(settings.weights.as_dict(), gate, (Length(settings.length), Coverage(settings.coverage), *terms))
