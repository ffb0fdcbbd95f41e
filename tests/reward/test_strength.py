"""The strengths of references: known truths are found again, and the luck of the draw leaves the curve."""

import math
import random

import numpy as np
import pytest

from reward.base import Reference
from reward.pool import Pool
from reward.strength import Strengths

POOL = Pool(tuple(Reference(f"{tier}{i}", tier, b"") for tier in ("love", "okay") for i in range(10)), "here")
NAMES = [reference.name for reference in POOL.references]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def simulated(steps=100, paintings=8, seed=0, slope=0.02):
    """A policy that grows by `slope` logits a step against references of known strength, four drawn a step."""
    generator = random.Random(seed)
    truth = {name: generator.gauss(1.0 if name.startswith("love") else -0.5, 0.8) for name in NAMES}
    strengths, draws, means = Strengths(POOL), {}, {}
    for step in range(1, steps + 1):
        draws[step] = generator.sample(NAMES[:10], 2) + generator.sample(NAMES[10:], 2)
        won = [
            {name: float(generator.random() < sigmoid(-1 + slope * step - truth[name])) for name in draws[step]}
            for _ in range(paintings)
        ]
        strengths.add(step, won)
        means[step] = sum(sum(one.values()) for one in won) / (4 * paintings)
    return truth, strengths, draws, means


def test_known_strengths_are_found_again_within_their_uncertainty():
    truth, strengths, _, _ = simulated()
    fit = strengths.fit()
    found = {name: fit.strength(name) for name in NAMES}
    # Only differences are known: nothing tells a strong pool from a weak policy.
    shift = np.mean([found[name][0] - truth[name] for name in NAMES])
    errors = np.array([found[name][0] - truth[name] - shift for name in NAMES])
    assert np.corrcoef([truth[name] for name in NAMES], [found[name][0] for name in NAMES])[0, 1] > 0.9
    assert np.sqrt((errors**2).mean()) < 0.45
    assert (np.abs(errors) < 2 * np.array([found[name][1] for name in NAMES])).mean() > 0.8


def test_more_comparisons_make_it_surer():
    few, many = (simulated(steps=steps)[1].fit() for steps in (10, 100))
    assert all(many.strength(name)[1] < few.strength(name)[1] for name in NAMES)


def test_the_luck_of_the_draw_leaves_the_curve():
    """Judge scores scatter around the true trend; with the effect of the draw taken off they scatter much less."""
    _, strengths, draws, means = simulated(paintings=200, slope=0.0)
    fit = strengths.fit()
    raw = np.array([means[step] for step in means])
    adjusted = np.array([means[step] - fit.effect(draws[step], step) for step in means])
    assert adjusted.std() < 0.35 * raw.std()
    assert adjusted.mean() == pytest.approx(raw.mean(), abs=0.03)


def test_an_easy_draw_has_a_positive_effect_and_a_negative_difficulty():
    truth, strengths, _, _ = simulated()
    fit = strengths.fit()
    order = sorted(NAMES, key=lambda name: truth[name])
    assert fit.effect(order[:4], 100) > 0.05 > -0.05 > fit.effect(order[-4:], 100)
    assert fit.difficulty(order[:4]) < -0.5 < 0.5 < fit.difficulty(order[-4:])


def test_a_reference_that_was_never_drawn_is_like_its_tier():
    strengths = Strengths(POOL)
    won = dict.fromkeys(NAMES[:9], 0.2) | dict.fromkeys(NAMES[10:19], 0.8)
    for step in range(1, 10):
        strengths.add(step, [won] * 8)
    fit = strengths.fit()
    for unseen, other in (("love9", "love0"), ("okay9", "okay0")):
        assert fit.strength(unseen)[0] == pytest.approx(fit.strength(other)[0], abs=0.1)
        assert fit.advantage(unseen, 9)[1] > 2 * fit.advantage(other, 9)[1]


def test_the_fit_is_the_mode_of_the_posterior():
    """Against a plain numerical maximum of the same posterior in one dimension: one reference, one step."""
    pool = Pool((Reference("love0", "love", b""), Reference("okay0", "okay", b"")), "here")
    strengths = Strengths(pool)
    strengths.add(1, [{"love0": 1.0}] * 6 + [{"love0": 0.0}] * 2)
    mean, deviation = strengths.fit().advantage("love0", 1)
    # theta - beta has prior variance 2^2 + 2^2 + 1^2 = 9.
    grid = np.linspace(-6, 6, 240001)
    logs = 6 * grid - 8 * np.logaddexp(0, grid) - grid**2 / 18
    best = grid[np.argmax(logs)]
    assert mean == pytest.approx(best, abs=1e-4)
    share = sigmoid(best)
    assert deviation == pytest.approx((8 * share * (1 - share) + 1 / 9) ** -0.5, abs=1e-3)


def test_nothing_known_is_even_odds():
    fit = Strengths(POOL).fit()
    assert fit.win_rate("love0", 5) == 0.5
    assert fit.effect(["love0", "okay3"], 5) == 0.0


def test_the_same_record_gives_the_same_fit_whenever_it_was_added():
    first, second = Strengths(POOL), Strengths(POOL)
    record = {step: [{NAMES[(step * 3 + i) % 20]: (step * i % 5) / 4} for i in range(8)] for step in range(1, 20)}
    for step, won in record.items():
        first.add(step, won)
        first.fit()
        for one in won:
            second.add(step, [one])
    assert (first.fit().mean == second.fit().mean).all()
