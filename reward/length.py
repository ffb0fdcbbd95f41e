"""The length term: the recipe's ramp over the length of the sketch, counted as characters / 4.

t = characters / 4; 0 where t < 150 or t > 6000, 1 where t >= 3000, (t - 150) / 2850 between (all bounds are settings).
It measures the sketch, never the prose around it, and says nothing about the painting.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward.base import Candidate, Reference, Score
from reward.settings import LengthSettings


def ramp(tokens: float, settings: LengthSettings) -> float:
    """The score, 0..1, of a sketch of `tokens` tokens."""
    if tokens < settings.lowest or tokens > settings.highest:
        return 0.0
    if tokens >= settings.full:
        return 1.0
    return (tokens - settings.lowest) / (settings.full - settings.lowest)


class Length:
    """Term `length`. A candidate without a sketch scores 0."""

    name = "length"
    stand_in = False

    def __init__(self, settings: LengthSettings) -> None:
        self.settings = settings

    def score(self, candidate: Candidate, references: Sequence[Reference] = ()) -> Score:
        tokens = len(candidate.source or "") / self.settings.characters_per_token
        return Score(ramp(tokens, self.settings), {"tokens": tokens})
