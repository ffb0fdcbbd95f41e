"""Percentiles, determinism, growth of memory and the last line, from made-up results."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.compare import Difference
from bench.summary import Sample, determinism, last_line, seed_median, split, spread, timings
from bench.trials import growth, stock_seconds

PROFILES = ("stock", "exact", "fast")


def sample(profile: str, sketch: str, wall_s: float, **values: Any) -> Sample:
    known = {"stage": "warm", "round": 0, "cpu_s": wall_s / 2, "digest": sketch, **values}
    return Sample(profile=profile, sketch=sketch, wall_s=wall_s, **known)


def apart(**values: float) -> Difference:
    known = {"mad": 0.4, "bias": 0.0, "ssim": 0.995, "coverage": 0.2, "reference_coverage": 0.2, "coverage_error": 0.01}
    return Difference(maximum=9, **{**known, **values})


RUN = [
    sample("stock", "seed_a", 60.0),
    sample("stock", "seed_b", 40.0),
    sample("stock", "night", 500.0),
    sample("stock", "seed_a", 999.0, stage="cold"),
    *(sample("fast", "seed_a", wall) for wall in (0.9, 1.0, 7.0)),
    *(sample("fast", "seed_b", wall) for wall in (0.5, 0.5, 0.5)),
    *(sample("fast", "seed_c", wall) for wall in (0.1, 0.1)),
    sample("fast", "night", 30.0),
    sample("fast", "seed_b", 80.0, stage="cold"),
    sample("exact", "seed_a", 2.0),
    sample("exact", "seed_a", 2.0),
]


def test_spread() -> None:
    assert spread([4.0]) == {"n": 1, "p50": 4.0, "p95": 4.0, "max": 4.0}
    found = spread(float(value) for value in range(101))
    assert found == {"n": 101, "p50": 50.0, "p95": 95.0, "max": 100.0}
    assert math.isnan(spread([])["p50"])


def test_timings_keep_stages_profiles_and_sketches_apart() -> None:
    rows = {(row["stage"], row["profile"], row["sketch"]): row for row in timings(RUN)}
    assert len(rows) == 10
    assert rows["warm", "fast", "seed_a"]["p50"] == 1.0
    assert rows["warm", "fast", "seed_a"]["max"] == 7.0
    assert rows["warm", "fast", "seed_a"]["cpu_p50"] == 0.5
    assert rows["cold", "fast", "seed_b"]["n"] == 1


def test_the_median_of_the_seed_sketches_takes_only_warm_paintings() -> None:
    assert seed_median(RUN, "fast", {"seed_a", "seed_b"}) == pytest.approx(0.7)
    assert math.isnan(seed_median(RUN, "fast", set()))


def test_last_line() -> None:
    """speedup over seed_a and seed_b, which both painted: 50 / .7; median over all seeds of fast: .5."""
    differences = {
        ("fast", "seed_a"): apart(ssim=0.9931, mad=0.51),
        ("fast", "night"): apart(ssim=0.9987, mad=0.732, coverage_error=0.0213),
        ("exact", "seed_a"): apart(ssim=0.5, mad=99.0, coverage_error=0.9),
    }
    assert last_line(RUN, differences, PROFILES) == (
        "speedup=71.4 median_s=0.500 ssim_min=0.9931 mad_max=0.732 coverage_err_max=0.0213 identical=yes"
    )


def test_last_line_says_nan_for_what_was_not_measured() -> None:
    line = last_line([sample("fast", "night", 1.0)], {}, ("fast",))
    assert line == "speedup=nan median_s=nan ssim_min=nan mad_max=nan coverage_err_max=nan identical=no"
    assert all(math.isnan(float(part.partition("=")[2])) for part in line.split()[:5])


@pytest.mark.parametrize("profile", ["fast", "exact"])
@pytest.mark.parametrize("stage", ["cold", "warm", "workers=2"])
def test_one_painting_with_other_bytes_is_seen(profile: str, stage: str) -> None:
    changed = [*RUN, sample(profile, "seed_a", 1.0, stage=stage, digest="other")]
    assert determinism(changed, profile)["different"] == ["seed_a"]
    assert last_line(changed, {}, PROFILES).endswith("identical=no")


def test_stock_is_not_asked_for_the_same_bytes() -> None:
    changed = [*RUN, sample("stock", "seed_a", 60.0, digest="other")]
    assert determinism(changed, "stock")["identical"] is False
    assert last_line(changed, {}, PROFILES).endswith("identical=yes")


def test_what_was_never_repeated_is_not_called_identical() -> None:
    once = [sample("fast", "seed_a", 1.0), sample("fast", "seed_b", 1.0)]
    assert determinism(once, "fast")["identical"] is None
    assert last_line(once, {}, ("fast",)).endswith("identical=no")


def test_split_is_of_the_seed_sketches() -> None:
    rows = [
        sample("fast", "seed_a", 1.0, phases={"load": 0.1, "run": 0.8}, cpu_split_s={"page": 0.5}),
        sample("fast", "seed_a", 2.0, phases={"load": 0.3, "run": 1.6}, cpu_split_s={"page": 0.7, "gpu": 0.2}),
        sample("fast", "night", 90.0, phases={"load": 50.0}),
    ]
    found = split(rows, "fast")
    assert found["wall_s"] == pytest.approx({"load": 0.2, "run": 1.2, "total": 1.5})
    assert found["cpu_s"] == pytest.approx({"page": 0.6, "gpu": 0.1, "total": 0.75})


def test_growth_of_memory() -> None:
    steady = [(done, 300.0) for done in range(201)]
    assert growth(steady, 200)["growth_mb"] == 0
    leaking = [(done, 300.0 + done) for done in range(201)]
    found = growth(leaking, 200)
    assert found == {"first_mb": 310, "middle_mb": 400, "last_mb": 490, "growth_mb": 180, "peak_mb": 500}
    assert growth([(3, 250.0)], 3)["growth_mb"] == 0


def test_stock_is_estimated_from_shapes_and_canvas() -> None:
    small, large = (sample("fast", "a", 1.0, shapes=20, width=side, height=side) for side in (600, 1200))
    assert stock_seconds(small) == 60
    assert stock_seconds(large) == 2 * stock_seconds(small)
