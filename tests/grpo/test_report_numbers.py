"""The report's formulas, against sums done by hand, and what holds for any numbers."""

from __future__ import annotations

import random

import pytest

from grpo.report.numbers import correlation, correlation_inside, cuts, fit_line, mean, median, parts_of_rise


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, []), (1, [1]), (2, [1, 1]), (3, [1, 1, 1]), (7, [2, 3, 2]), (100, [33, 34, 33])],
)
def test_thirds_hold_every_step_once(count: int, expected: list[int]) -> None:
    parts = cuts(count)
    assert [len(part) for part in parts] == expected
    assert [step for part in parts for step in part] == list(range(count))


def test_thirds_are_those_of_the_run_s_own_summary() -> None:
    from grpo.console import thirds

    for count in range(1, 40):
        values = [float(value * value) for value in range(count)]
        assert thirds(values) == pytest.approx([mean([values[place] for place in part]) for part in cuts(count)])


def test_line() -> None:
    # x 1 2 3 4, y 1 3 2 6: means 2.5 and 3. Sxx = 2.25 + .25 + .25 + 2.25 = 5, Sxy = 3 + 0 - .5 + 4.5 = 7.
    # slope 7 / 5 = 1.4; Syy = 4 + 0 + 1 + 9 = 14; what is left = 14 - 49 / 5 = 4.2; error^2 = 4.2 / 2 / 5 = .42;
    # t = 1.4 / .64807 = 2.16025.
    line = fit_line([1, 2, 3, 4], [1, 3, 2, 6])
    assert line is not None
    assert (line.slope, line.intercept, line.n) == pytest.approx((1.4, -0.5, 4))
    assert line.standard_error == pytest.approx(0.648074, abs=1e-6)
    assert line.t == pytest.approx(2.160247, abs=1e-6)


def test_a_line_leaves_missing_values_out() -> None:
    assert fit_line([1, 2, 3, 4, 5], [1, 3, None, 2, 6]) == fit_line([1, 2, 4, 5], [1, 3, 2, 6])


def test_a_line_claims_no_error_that_it_cannot_know() -> None:
    assert fit_line([1], [1]) is None
    assert fit_line([3, 3], [1, 2]) is None
    two, straight = fit_line([1, 2], [1, 3]), fit_line([1, 2, 3], [0.1, 0.2, 0.3])
    assert two is not None
    assert straight is not None
    assert (two.slope, two.standard_error, two.t) == (2, None, None)
    assert straight.slope == pytest.approx(0.1)
    assert straight.t is None


def test_parts_of_a_rise() -> None:
    # first .1 .2 .5 .8: bad .1 .2 (p1 = .5, b1 = .15), good .5 .8 (g1 = .65), mean .4
    # last  .2 .6 .8 1.: bad .2     (p2 = .25, b2 = .2), good .6 .8 1. (g2 = .8), mean .65
    # rarer = (.5 - .25) ((.65 + .8) / 2 - (.15 + .2) / 2) = .25 (.725 - .175) = .1375
    # p' = .375: good better = .625 x .15 = .09375, bad better = .375 x .05 = .01875; together .25
    rise = parts_of_rise([0.1, 0.2, 0.5, 0.8], [0.2, 0.6, 0.8, 1.0])
    assert rise is not None
    assert rise.rise == pytest.approx(0.25)
    assert (rise.rarer, rise.good_better, rise.bad_better) == pytest.approx((0.1375, 0.09375, 0.01875))


def test_the_limit_itself_is_no_bad_reward() -> None:
    rise = parts_of_rise([0.3, 0.29], [0.3, 0.3])
    assert rise is not None
    assert (rise.share_first, rise.share_last) == (0.5, 0.0)


def test_parts_add_up_to_any_rise() -> None:
    generator = random.Random(0)
    for _ in range(300):
        scale = generator.choice((0.25, 0.5, 1.0))
        first, last = ([scale * generator.random() for _ in range(generator.randint(1, 9))] for _ in range(2))
        rise = parts_of_rise(first, last)
        assert rise is not None
        assert rise.rarer + rise.good_better + rise.bad_better == pytest.approx(rise.rise, abs=1e-12)
        assert rise.rise == pytest.approx(sum(last) / len(last) - sum(first) / len(first), abs=1e-12)


def test_what_a_set_lacks_moves_nothing() -> None:
    # No bad one at the end: the bad have not become better, they have gone. p1 = .5, b = .1, g1 = .5, g2 = .7:
    # rarer = .5 (.6 - .1) = .25, good better = .75 x .2 = .15, together .7 - .3 = .4.
    rise = parts_of_rise([0.1, 0.5], [0.7])
    assert rise is not None
    assert (rise.rarer, rise.good_better, rise.bad_better) == pytest.approx((0.25, 0.15, 0.0))
    assert rise.bad_last is None
    only_bad = parts_of_rise([0.1], [0.2])
    assert only_bad is not None
    assert (only_bad.rarer, only_bad.good_better, only_bad.bad_better) == pytest.approx((0.0, 0.0, 0.1))
    assert parts_of_rise([], [0.2]) is None


def test_correlation() -> None:
    # x 1 2 3, y 1 3 2: deviations -1 0 1 and -1 1 0: 1 / sqrt(2 x 2) = .5
    assert correlation([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5)
    assert correlation([1, 2], [1, 3]) is None
    assert correlation([1, 2, 3], [0.1 + 0.2, 0.3, 0.3]) is None


def test_correlation_inside_groups_knows_nothing_of_the_trend() -> None:
    # Both rise from group to group, and inside each of them y falls as x rises.
    groups, x, y = [1, 1, 2, 2], [0.0, 1.0, 10.0, 11.0], [1.0, 0.0, 11.0, 10.0]
    assert correlation(x, y) == pytest.approx(0.980198, abs=1e-6)
    assert correlation_inside(groups, x, y) == pytest.approx(-1.0)


def test_median() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5
