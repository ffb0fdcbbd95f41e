"""The record that comes back for every sketch: `Painting`.

What each outcome means for a reward is fixed here and nowhere else:

  painted    pixels are there; `finished` says whether the sketch ran to its end or threw after pigment was down
  rejected   the sketch is at fault (a rule broken, an error before any pigment, blank, too slow, too big): reward 0.0
  unscored   the machine is at fault (browser, driver, page or memory of the host lost): reward None, never 0.0
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

REJECTIONS = {
    "no_sketch": "the reply holds no sketch",
    "truncated": "the sketch stops before its brackets close",
    "syntax_error": "the sketch is not JavaScript",
    "no_setup": "the sketch has no function setup",
    "not_webgl": "the canvas is not a WEBGL canvas",
    "canvas_size": "the canvas is larger than allowed",
    "outside_access": "the sketch reaches outside the studio (network, files, DOM, eval, clocks of the machine)",
    "text": "the sketch writes text on the canvas",
    "images": "the sketch loads, draws or filters images or reads pixels back",
    "buffers": "the sketch makes an offscreen buffer, a shader or takes a raw context",
    "primitives": "the sketch draws with p5's own shapes instead of brush",
    "unknown_method": "the sketch calls a method that does not exist on brush",
    "no_painting": "the sketch never lays pigment",
    "throws": "the sketch throws before any pigment is down",
    "blank": "the painting is blank",
    "too_slow": "the sketch uses more than its CPU budget or never finishes, twice",
    "too_big": "the sketch uses more than its memory ceiling, twice",
}
CAUSES = {
    "browser_died": "the browser or its renderer ended",
    "driver_died": "chromedriver ended",
    "page_lost": "the page or the connection to it was lost",
    "context_lost": "WebGL lost its context",
    "host_stalled": "the machine gave the browser too little time before the deadline",
    "no_memory": "the machine ran out of memory",
    "farm_closed": "the farm was closed before the sketch was painted",
}


class Outcome(StrEnum):
    PAINTED = "painted"
    REJECTED = "rejected"
    UNSCORED = "unscored"


@dataclass(frozen=True)
class Painting:
    """What became of one sketch.

    reason: empty when painted; a key of REJECTIONS when rejected, a key of CAUSES when unscored. detail: one line for
    a person. line: the line of the sketch (1-based) that the detail speaks of, where known. png: the canvas, lossless.
    coverage: share of pixels that differ from the paper, 0..1. shapes, vertices, circles: counters of calls that
    really laid pigment.
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
