"""Samples of single paintings and what they say together: percentiles, determinism, the last line for machines."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.compare import Difference
from bench.corpus import SEED

STOCK = "stock"


@dataclass(frozen=True)
class Sample:
    """One painting.

    stage: `cold` (the first painting of a fresh browser), `warm` (one browser, one painting at a time), `workers=N`
    (through a farm) or `set NAME` (warm, outside the corpus). wall_s: seconds that the caller waited; through a farm
    without the time in its queue. cpu_s: CPU seconds of the browser's processes. phases: wall seconds as Painting
    names them, and `transport`, what a farm adds to them. cpu_split_s: CPU seconds by kind of process. digest: of the
    PNG's bytes. load: processes running or waiting on the machine when it was done (load average of one minute).
    """

    profile: str
    sketch: str
    stage: str
    round: int
    wall_s: float
    cpu_s: float
    digest: str
    shapes: int = 0
    width: int = 0
    height: int = 0
    coverage: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    cpu_split_s: dict[str, float] = field(default_factory=dict)
    load: float = 0.0


def spread(values: Iterable[float]) -> dict[str, float]:
    """n, p50, p95 (both interpolated linearly) and max; NaN where there are no values."""
    known = list(values)
    if not known:
        return {"n": 0, "p50": math.nan, "p95": math.nan, "max": math.nan}
    p50, p95 = np.percentile(known, [50, 95])
    return {"n": len(known), "p50": float(p50), "p95": float(p95), "max": max(known)}


def timings(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """One row for each stage, profile and sketch, in the order of first appearance: spread of the wall time, CPU."""
    groups: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.stage, sample.profile, sample.sketch].append(sample)
    return [
        {
            "stage": stage,
            "profile": profile,
            "sketch": sketch,
            **spread(sample.wall_s for sample in group),
            "cpu_p50": statistics.median(sample.cpu_s for sample in group),
        }
        for (stage, profile, sketch), group in groups.items()
    ]


def seed_median(samples: Sequence[Sample], profile: str, sketches: Iterable[str]) -> float:
    """Median of the warm wall seconds of `profile` over all paintings of `sketches`; NaN without any."""
    wanted = set(sketches)
    values = [s.wall_s for s in samples if s.stage == "warm" and s.profile == profile and s.sketch in wanted]
    return statistics.median(values) if values else math.nan


def seeds_of(samples: Sequence[Sample], profile: str) -> set[str]:
    """The seed-like sketches that `profile` has painted warm."""
    return {s.sketch for s in samples if s.stage == "warm" and s.profile == profile and s.sketch.startswith(SEED)}


def split(samples: Sequence[Sample], profile: str, stage: str = "warm") -> dict[str, dict[str, float]]:
    """Where the time of a painting goes: medians over the seed-like sketches, over all sketches without those.

    `wall_s`: of each phase and in all; `cpu_s`: of each kind of process and in all.
    """
    chosen = [s for s in samples if s.stage == stage and s.profile == profile]
    chosen = [s for s in chosen if s.sketch.startswith(SEED)] or chosen

    def medians(rows: list[dict[str, float]]) -> dict[str, float]:
        names = sorted({name for row in rows for name in row} - {"total"}) + ["total"] * bool(rows)
        return {name: statistics.median(row.get(name, 0.0) for row in rows) for name in names}

    return {
        "wall_s": medians([{**s.phases, "total": s.wall_s} for s in chosen]),
        "cpu_s": medians([{**s.cpu_split_s, "total": s.cpu_s} for s in chosen]),
    }


def determinism(samples: Sequence[Sample], profile: str) -> dict[str, Any]:
    """Whether every painting of a sketch has the same bytes: over repeats, orders, fresh browsers and workers.

    stages: paintings of each stage. repeated: sketches painted more than once. different: those with unequal bytes.
    identical: None when nothing was repeated.
    """
    digests: dict[str, list[str]] = defaultdict(list)
    stages: dict[str, int] = defaultdict(int)
    for sample in samples:
        if sample.profile == profile and not sample.stage.startswith("set "):
            digests[sample.sketch].append(sample.digest)
            stages[sample.stage] += 1
    repeated = {sketch: found for sketch, found in digests.items() if len(found) > 1}
    different = sorted(sketch for sketch, found in repeated.items() if len(set(found)) > 1)
    return {
        "stages": dict(stages),
        "repeated": len(repeated),
        "different": different,
        "identical": not different if repeated else None,
    }


def subject(profiles: Sequence[str]) -> str:
    """The profile that the last line speaks of: the fastest one measured (they are ordered from slow to fast)."""
    others = [profile for profile in profiles if profile != STOCK]
    return others[-1] if others else STOCK


def last_line(
    samples: Sequence[Sample], differences: dict[tuple[str, str], Difference], profiles: Sequence[str]
) -> str:
    """The line for machines.

    speedup: ratio of the medians, stock over the subject, over the seed-like sketches that both painted warm in this
    run. median_s: warm median of the subject over the seed-like sketches. ssim_min, mad_max, coverage_err_max: over
    all sketches of the subject that were compared with stock. identical: the same bytes every time, for every profile
    but stock. What was not measured is `nan`, and never `yes`.
    """
    name = subject(profiles)
    both = seeds_of(samples, name) & seeds_of(samples, STOCK)
    speedup = seed_median(samples, STOCK, both) / seed_median(samples, name, both) if name != STOCK else math.nan
    compared = [found for (profile, _), found in differences.items() if profile == name]
    verdicts = [determinism(samples, profile)["identical"] for profile in profiles if profile != STOCK]
    return (
        f"speedup={speedup:.1f} "
        f"median_s={seed_median(samples, name, seeds_of(samples, name)):.3f} "
        f"ssim_min={min((found.ssim for found in compared), default=math.nan):.4f} "
        f"mad_max={max((found.mad for found in compared), default=math.nan):.3f} "
        f"coverage_err_max={max((found.coverage_error for found in compared), default=math.nan):.4f} "
        f"identical={'yes' if verdicts and all(verdicts) else 'no'}"
    )
