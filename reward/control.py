"""The control task: a reward that needs no painting, to see that training moves before anything costly is tried.

    r(n) = exp(-((n - target) / 10)^2),   n = how often `brush.fill(` stands in the sketch's text

`Control` judges candidates in the place of `reward.mix.Mix`. A reply without a sketch, or with one that the static look
refuses (cut off, outside the studio's rules), is rejected as everywhere: reward 0.0. Nothing is ever unscored. A text
count counts a loop once and a comment too: it says nothing about the painting, and is not meant to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reward.base import Candidate, Reference, Score, Term, Verdict
from reward.gate import Gate
from reward.judge import Totals

CALL = "brush.fill("
WIDTH = 10.0


def fills(source: str) -> int:
    """How often `brush.fill(` stands in the text of a sketch."""
    return source.count(CALL)


def closeness(count: int, target: int) -> float:
    """exp(-((count - target) / 10)^2): 1 at the target, 0.78 at 5 from it, 0.37 at 10."""
    return math.exp(-(((count - target) / WIDTH) ** 2))


class Control:
    """Offers what the collector asks of a Mix. target: the count that scores 1."""

    terms: tuple[Term, ...] = ()
    parallel = 1

    def __init__(self, gate: Gate, target: int) -> None:
        self.gate = gate
        self.target = target

    def judge(self, candidate: Candidate, references: Sequence[Reference] = ()) -> Verdict:
        """The verdict on the text alone; its detail names the count."""
        refusal = self.gate.refusal(candidate)
        if refusal is not None:
            return Verdict(0.0, "rejected", refusal.reason, refusal.detail)
        count = fills(candidate.source or "")
        score = Score(closeness(count, self.target), {"count": count})
        return Verdict(score.value, "scored", detail=f"{count} times {CALL})", terms={"fills": score})

    def totals(self) -> Totals:
        """No judge is asked."""
        return Totals()

    def stop(self, reason: str) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing to close."""
