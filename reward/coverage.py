"""The coverage term: how much of the paper carries paint.

A trapezoid over the share of painted pixels: 0 up to `lowest`, linear to 1 at `low`, 1 up to `high`, linear down to 0
at `highest`. The share itself is measured by `render`. It says nothing about what the paint looks like, so it should
weigh little.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward.base import Candidate, Reference, Score
from reward.settings import CoverageSettings


def trapezoid(share: float, settings: CoverageSettings) -> float:
    """The score, 0..1, of a painting whose paint covers `share` (0..1) of the canvas."""
    rise = (share - settings.lowest) / (settings.low - settings.lowest)
    fall = (settings.highest - share) / (settings.highest - settings.high)
    return max(0.0, min(1.0, rise, fall))


class Coverage:
    """Term `coverage`. Not scored without a painting."""

    name = "coverage"
    stand_in = False

    def __init__(self, settings: CoverageSettings) -> None:
        self.settings = settings

    def score(self, candidate: Candidate, references: Sequence[Reference] = ()) -> Score:
        if candidate.painting is None or not candidate.painting.painted:
            return Score(None, cause="there is no painting")
        share = candidate.painting.coverage
        return Score(trapezoid(share, self.settings), {"coverage": share})
