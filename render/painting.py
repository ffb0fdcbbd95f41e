"""The record that comes back for every sketch: `Painting`.

What each outcome means for a reward is fixed here and nowhere else:

  painted    pixels are there; `finished` says whether the sketch ran to its end or threw after pigment was down
  rejected   the sketch is at fault (a rule broken, an error before any pigment, blank, too slow, too big): reward 0.0
  unscored   the machine is at fault (browser, driver, page or memory of the host lost): reward None, never 0.0
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    PAINTED = "painted"
    REJECTED = "rejected"
    UNSCORED = "unscored"


@dataclass(frozen=True)
class Painting:
    """What became of one sketch.

    reason: one word, empty when painted: a gate reason (`no_setup`, `forbidden`, `throws`, `blank`, `too_slow`, ...)
    or a cause (`browser_died`, `driver_died`, `context_lost`, ...). detail: one line for a person. line: the line of
    the sketch (1-based) that the detail speaks of, where known. png: the canvas, lossless. coverage: share of pixels
    that differ from the paper, 0..1. shapes, vertices, circles: counters of calls that really laid pigment.
    timings: seconds of each phase (`queue`, `load`, `run`, `read`, `total`) plus `cpu`, CPU seconds of the browser.
    worker: index of the worker that painted it; attempt: 1, or 2 after a retry in a fresh browser.
    """

    outcome: Outcome
    reason: str = ""
    detail: str = ""
    line: int | None = None
    png: bytes | None = None
    width: int = 0
    height: int = 0
    coverage: float = 0.0
    shapes: int = 0
    vertices: int = 0
    circles: int = 0
    errors: tuple[str, ...] = ()
    finished: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    worker: int = -1
    attempt: int = 0

    @property
    def painted(self) -> bool:
        return self.outcome is Outcome.PAINTED
