"""Advantages against numbers computed by hand, and what None, equal and broken rewards must do."""

import math
import random

import pytest

from grpo.advantage import SCALES, advantages

# Two groups of different spread. Group 1: mean 2.5, sum of squares 5, sd sqrt(5/3). Group 2: mean 20, squares 600,
# sd sqrt(200). All eight: sum 90, mean 11.25, sum of squares of rewards 30 + 2200 = 2230, sd sqrt((2230 - 1012.5) / 7).
NARROW, WIDE = [1.0, 2.0, 3.0, 4.0], [0.0, 20.0, 30.0, 30.0]
NARROW_SD, WIDE_SD = math.sqrt(5 / 3), math.sqrt(600 / 3)
BATCH_SD = math.sqrt((2230 - 8 * 11.25**2) / 7)
CENTRED = [-1.5, -0.5, 0.5, 1.5, -20.0, 0.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("scale", "divisors"),
    [
        ("none", [1.0] * 8),
        ("group", [NARROW_SD + 1e-4] * 4 + [WIDE_SD + 1e-4] * 4),
        ("batch", [BATCH_SD + 1e-4] * 8),
    ],
)
def test_two_groups_by_hand(scale: str, divisors: list[float]) -> None:
    found, stats = advantages(NARROW + WIDE, 4, scale)
    assert found == pytest.approx(
        [value / divisor for value, divisor in zip(CENTRED, divisors, strict=True)], rel=1e-12
    )
    assert [group.mean for group in stats] == [2.5, 20.0]
    assert [group.standard_deviation for group in stats] == pytest.approx([NARROW_SD, WIDE_SD])


def test_epsilon_is_added_to_the_deviation() -> None:
    found, _ = advantages([0.0, 2.0], 2, "group", epsilon=1.0)
    assert found == pytest.approx([-1 / (math.sqrt(2) + 1), 1 / (math.sqrt(2) + 1)], rel=1e-12)


@pytest.mark.parametrize(
    ("rewards", "expected", "scored", "zero_spread", "unscored"),
    [
        ([None, 3.0, 4.0, 5.0], [0.0, -1.0, 0.0, 1.0], 3, False, False),
        ([None, None, None, 3.0], [0.0] * 4, 1, False, True),
        ([None] * 4, [0.0] * 4, 0, False, True),
        ([0.7, 0.7, 0.7, 0.7], [0.0] * 4, 4, True, False),
        ([0.1, None, 0.1, 0.1], [0.0] * 4, 3, True, False),
        ([0.0, None, None, 1.0], [-0.5, 0.0, 0.0, 0.5], 2, False, False),
    ],
)
def test_what_none_means(
    rewards: list[float | None], expected: list[float], scored: int, zero_spread: bool, unscored: bool
) -> None:
    found, [group] = advantages(rewards, 4)
    assert found == expected
    assert (group.size, group.scored, group.zero_spread, group.unscored) == (4, scored, zero_spread, unscored)
    assert group.gives_gradient == any(expected)


def test_none_is_not_zero() -> None:
    with_none, _ = advantages([None, 0.5, 0.7, 0.9], 4)
    with_zero, _ = advantages([0.0, 0.5, 0.7, 0.9], 4)
    assert with_none[1] == pytest.approx(-0.2)
    assert with_zero[1] == pytest.approx(-0.025)


def test_equal_rewards_whose_mean_is_rounded_still_give_exactly_zero() -> None:
    for scale in SCALES:
        assert advantages([0.1 + 0.2] * 7 + [1.0, 2.0, 3.0] * 2 + [0.5], 7, scale)[0][:7] == [0.0] * 7


def test_batch_deviation_counts_every_scored_reward_also_of_a_dead_group() -> None:
    found, stats = advantages([None, 9.0, 1.0, 3.0], 2, "batch")
    deviation = math.sqrt(((9 - 13 / 3) ** 2 + (1 - 13 / 3) ** 2 + (3 - 13 / 3) ** 2) / 2)
    assert found == pytest.approx([0.0, 0.0, -1 / (deviation + 1e-4), 1 / (deviation + 1e-4)])
    assert [group.unscored for group in stats] == [True, False]


@pytest.mark.parametrize("scale", SCALES)
def test_never_nan_and_each_scored_group_adds_up_to_zero(scale: str) -> None:
    draw = random.Random(0)
    for _ in range(300):
        rewards = [draw.choice([None, 0.0, 1.0, draw.random(), 1e-30, 1e6]) for _ in range(12)]
        found, _ = advantages(rewards, 4, scale)
        assert all(math.isfinite(value) for value in found)
        for start in range(0, 12, 4):
            group = found[start : start + 4]
            assert sum(group) == pytest.approx(0, abs=1e-9 * max(1.0, *map(abs, group)))
        assert all(value == 0 for value, reward in zip(found, rewards, strict=True) if reward is None)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_refused_with_its_place(bad: float) -> None:
    with pytest.raises(ValueError, match="reward 1 of group 1 is"):
        advantages([1.0, 2.0, 3.0, bad], 2)


@pytest.mark.parametrize(
    ("rewards", "size", "scale", "word"),
    [
        ([1.0], 1, "none", "at least 2"),
        ([1.0, 2.0, 3.0], 2, "none", "do not divide into groups of 2"),
        ([1.0, 2.0], 2, "std", "none, group, batch"),
    ],
)
def test_refuses(rewards: list[float | None], size: int, scale: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        advantages(rewards, size, scale)
