"""The references of a step: shared, repeatable, and chosen as the policy of the draw says."""

import pytest

from render.errors import ConfigError
from reward.base import Reference
from reward.draw import draw_references, half_and_half, teaching
from reward.pool import Pool, shares
from reward.settings import PoolSettings
from reward.strength import Strengths

SMALL = Pool(tuple(Reference(f"{tier}{i}", tier, b"") for tier in ("love", "okay") for i in range(8)), "here")
NOTHING = Strengths(SMALL).fit()


def draw(step, policy="half_and_half", count=4, seed=0, steps=100, fit=NOTHING, **more):
    return draw_references(
        SMALL, PoolSettings(references=count, reference_policy=policy, **more), seed, step, steps, fit
    )


def known(won, steps=6, paintings=8):
    """A fit in which every painting of every step won `won[name]` against each named reference."""
    strengths = Strengths(SMALL)
    for step in range(1, steps + 1):
        strengths.add(step, [won] * paintings)
    return strengths.fit()


@pytest.mark.parametrize(("count", "love", "okay"), [(1, 1, 0), (2, 1, 1), (4, 2, 2), (5, 3, 2), (7, 4, 3)])
def test_references_are_half_and_half_by_largest_remainder(count, love, okay):
    assert shares(count) == {"love": love, "okay": okay}
    tiers = [reference.tier for reference in draw(2, count=count)]
    assert tiers == ["love"] * love + ["okay"] * okay


@pytest.mark.parametrize("policy", ["half_and_half", "adaptive", "easy_to_hard"])
def test_the_draw_depends_on_its_arguments_alone(policy):
    first = {(seed, step): draw(step, policy, seed=seed) for seed in (0, 1) for step in range(1, 41)}
    for (seed, step), drawn in reversed(first.items()):
        assert draw(step, policy, seed=seed) == drawn
        assert len({reference.name for reference in drawn}) == 4
    assert len({tuple(reference.name for reference in drawn) for drawn in first.values()}) > 50
    assert first[0, 1] != first[1, 1]


def test_the_half_and_half_draw_is_that_of_the_embedded_runs_so_far():
    names = [[reference.name for reference in half_and_half(SMALL, 4, 0, step)] for step in (1, 2)]
    assert names == [["love2", "love4", "okay2", "okay4"], ["love1", "love3", "okay0", "okay6"]]


@pytest.mark.parametrize("policy", ["half_and_half", "adaptive"])
def test_every_painting_is_drawn_in_time(policy):
    seen = {reference.name for step in range(1, 100) for reference in draw(step, policy, seed=3)}
    assert len(seen) == 16


def test_drawing_more_than_there_is_is_refused():
    with pytest.raises(ConfigError, match="needs 9 paintings of tier love, but here holds 8"):
        draw(1, count=18)
    with pytest.raises(ConfigError, match="references = 18, but here holds 16"):
        draw(1, "adaptive", count=18)


def test_adaptive_prefers_what_is_beaten_now_and_then():
    won = {f"okay{i}": 1.0 for i in range(8)} | {f"love{i}": 0.0 for i in range(8)} | {"okay0": 0.5, "love0": 0.5}
    fit = known(won)
    assert teaching(fit, "love0", 7) > 0.9
    assert teaching(fit, "love1", 7) < 0.2
    drawn = [reference.name for step in range(7, 107) for reference in draw(step, "adaptive", fit=fit)]
    even, lopsided = drawn.count("okay0") + drawn.count("love0"), drawn.count("okay1") + drawn.count("love1")
    assert even > 3 * lopsided > 0


def test_adaptive_keeps_a_floor_of_loved_paintings():
    fit = known({f"okay{i}": 0.5 for i in range(8)} | {f"love{i}": 0.0 for i in range(8)})
    loved = [sum(reference.tier == "love" for reference in draw(step, "adaptive", fit=fit)) for step in range(7, 60)]
    assert min(loved) == 1
    loved = [
        sum(reference.tier == "love" for reference in draw(step, "adaptive", fit=fit, love_floor=0.75))
        for step in range(7, 60)
    ]
    assert min(loved) == 3


def test_easy_to_hard_goes_from_the_weakest_to_the_strongest():
    won = {f"okay{i}": 0.9 - 0.05 * i for i in range(8)} | {f"love{i}": 0.4 - 0.05 * i for i in range(8)}
    fit = known(won)

    def mean(step):
        drawn = [reference for seed in range(20) for reference in draw(step, "easy_to_hard", seed=seed, fit=fit)]
        return sum(won[reference.name] for reference in drawn) / len(drawn)

    assert mean(1) > mean(50) + 0.2 > mean(100) + 0.4


def test_easy_to_hard_starts_with_okay_before_anything_is_known():
    assert {reference.tier for seed in range(20) for reference in draw(1, "easy_to_hard", seed=seed)} == {"okay"}
    assert {reference.tier for seed in range(20) for reference in draw(100, "easy_to_hard", seed=seed)} == {"love"}
