"""The formulas of the report: thirds, a fitted line, the parts of a rise, correlations. Pure: no files, no tables.

thirds         n steps are cut at round(n / 3) and round(2 n / 3); fewer than three steps: as many parts
line           ordinary least squares; t = slope / its standard error, the steps taken as independent
parts of a rise (Kitagawa 1955), from a first to a last set of rewards, the bad ones being those below `LOW`:

    mean  = p b + (1 - p) g          p share of the bad, b mean of the bad, g mean of the good
    rise  = (p1 - p2) (g' - b')      bad ones became rarer
          + (1 - p') (g2 - g1)       good ones became better
          + p' (b2 - b1)             bad ones became better
    with p' = (p1 + p2) / 2, b' and g' likewise

The three add up to the rise exactly. Where a set holds no bad (or no good) ones, their mean there is taken to be
that of the other set: it has no weight there.
correlation    Pearson's r; `inside` first takes each group's own means out, as the advantage does
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

LOW = 0.3  # a reward below it counts as bad
NAMES = {
    1: ("the only step",),
    2: ("first half", "last half"),
    3: ("first third", "middle third", "last third"),
}


@dataclass(frozen=True)
class Line:
    """A line fitted through n points. standard_error and t are None below three points, t also where all lie on it."""

    slope: float
    intercept: float
    standard_error: float | None
    t: float | None
    n: int


@dataclass(frozen=True)
class Rise:
    """A rise of the mean reward and its three parts, see the module's docstring. share_*: of bad ones, 0..1."""

    rise: float
    rarer: float
    good_better: float
    bad_better: float
    share_first: float
    share_last: float
    good_first: float | None
    good_last: float | None
    bad_first: float | None
    bad_last: float | None


def cuts(count: int) -> list[range]:
    """The positions of each third of `count` steps; sizes differ by one at most."""
    parts = min(3, count)
    edges = [round(part * count / parts) for part in range(parts + 1)] if parts else [0]
    return [range(start, end) for start, end in itertools.pairwise(edges)]


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of those that are there; None where none is."""
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def fit_line(x: Sequence[float], y: Sequence[float | None]) -> Line | None:
    """The line through the points whose y is there; None for fewer than two different x."""
    points = [(one, value) for one, value in zip(x, y, strict=True) if value is not None]
    n = len(points)
    if len({one for one, _ in points}) < 2:
        return None
    middle_x = math.fsum(one for one, _ in points) / n
    middle_y = math.fsum(value for _, value in points) / n
    spread = math.fsum((one - middle_x) ** 2 for one, _ in points)
    slope = math.fsum((one - middle_x) * (value - middle_y) for one, value in points) / spread
    intercept = middle_y - slope * middle_x
    if n < 3:
        return Line(slope, intercept, None, None, n)
    left = math.fsum((value - intercept - slope * one) ** 2 for one, value in points)
    error = math.sqrt(left / (n - 2) / spread)
    exact = left <= 1e-18 * max(1.0, math.fsum(value * value for _, value in points))
    return Line(slope, intercept, error, None if exact else slope / error, n)


def parts_of_rise(first: Sequence[float], last: Sequence[float], low: float = LOW) -> Rise | None:
    """The rise between two sets of rewards, in three parts that add up to it; None where a set is empty."""
    if not first or not last:
        return None
    shares = [sum(reward < low for reward in rewards) / len(rewards) for rewards in (first, last)]
    bads = [mean([reward for reward in rewards if reward < low]) for rewards in (first, last)]
    goods = [mean([reward for reward in rewards if reward >= low]) for rewards in (first, last)]
    bad_1, bad_2 = _filled(bads)
    good_1, good_2 = _filled(goods)
    share = (shares[0] + shares[1]) / 2
    return Rise(
        rise=math.fsum(last) / len(last) - math.fsum(first) / len(first),
        rarer=(shares[0] - shares[1]) * ((good_1 + good_2) / 2 - (bad_1 + bad_2) / 2),
        good_better=(1 - share) * (good_2 - good_1),
        bad_better=share * (bad_2 - bad_1),
        share_first=shares[0],
        share_last=shares[1],
        good_first=goods[0],
        good_last=goods[1],
        bad_first=bads[0],
        bad_last=bads[1],
    )


def _filled(pair: Sequence[float | None]) -> tuple[float, float]:
    """What one of two sets lacks is taken from the other; 0 where both lack it, for then it weighs nothing."""
    first, last = pair
    first = first if first is not None else last
    last = last if last is not None else first
    return first or 0.0, last or 0.0


def correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's r; None for fewer than three pairs or where one of them does not vary."""
    if len(x) < 3:
        return None
    middle_x, middle_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    own_x = math.fsum((one - middle_x) ** 2 for one in x)
    own_y = math.fsum((one - middle_y) ** 2 for one in y)
    # Values that are equal up to rounding do not vary.
    if own_x <= 1e-18 * len(x) * max(1.0, middle_x**2) or own_y <= 1e-18 * len(y) * max(1.0, middle_y**2):
        return None
    both = math.fsum((one - middle_x) * (two - middle_y) for one, two in zip(x, y, strict=True))
    return both / math.sqrt(own_x * own_y)


def correlation_inside(groups: Sequence[Hashable], x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's r after each group's means are taken out of x and y; None as in `correlation`."""
    members: dict[Hashable, list[int]] = {}
    for position, group in enumerate(groups):
        members.setdefault(group, []).append(position)
    rest_x, rest_y = list(x), list(y)
    for positions in members.values():
        middle_x = math.fsum(x[position] for position in positions) / len(positions)
        middle_y = math.fsum(y[position] for position in positions) / len(positions)
        for position in positions:
            rest_x[position] = x[position] - middle_x
            rest_y[position] = y[position] - middle_y
    return correlation(rest_x, rest_y)
