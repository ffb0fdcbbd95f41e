"""The gate: whether a candidate is worth scoring at all.

The recipe's order: no sketch in the reply, then what the static look refuses, then what became of the sketch in the
page, which has the last word: a painting that is there passes. A fault of the machine is `unscored`, never a rejection.
Leaves out the rules themselves: they stand in `render.sketch` (static) and in the page (everything else).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from render.painting import CAUSES, Outcome
from render.serve import read_api
from render.sketch import Refusal, Sketch, find_sketch, look
from reward.base import Candidate


@dataclass(frozen=True)
class GateResult:
    """outcome: `passed` (scored by the other terms), `rejected` (reward 0.0) or `unscored` (reward None). reason: a key
    of REJECTIONS when rejected, of CAUSES when unscored, else empty. line: of the sketch, from 1, where known."""

    outcome: Literal["passed", "rejected", "unscored"]
    reason: str = ""
    detail: str = ""
    line: int | None = None


class Gate:
    """methods: the names that exist on `brush`, or "all"."""

    def __init__(self, methods: Collection[str] | str) -> None:
        self.methods = methods
        self.api = read_api()

    def refuses(self, source: str) -> Refusal | None:
        """What the static look refuses, if anything: such a sketch need not be painted."""
        return look(source, self.methods, self.api)

    def check(self, candidate: Candidate) -> GateResult:
        """The gate's answer for one candidate; a candidate without a painting is judged by its text alone."""
        painting = candidate.painting
        if painting is not None:
            if painting.outcome is Outcome.PAINTED:
                return GateResult("passed")
            outcome: Literal["rejected", "unscored"] = (
                "rejected" if painting.outcome is Outcome.REJECTED else "unscored"
            )
            return GateResult(outcome, painting.reason, painting.detail, painting.line)
        refusal = self.refusal(candidate)
        if refusal is not None:
            return GateResult("rejected", refusal.reason, refusal.detail, refusal.line)
        return GateResult("unscored", "farm_closed", CAUSES["farm_closed"])

    def refusal(self, candidate: Candidate) -> Refusal | None:
        """What is wrong with a candidate's text, if anything: no sketch in it, or one that the static look refuses."""
        sketch = find_sketch(candidate.reply) if candidate.source is None else Sketch(candidate.source)
        return sketch.refusal if sketch.source is None else self.refuses(sketch.source)
