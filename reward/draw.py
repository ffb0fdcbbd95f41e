"""Which references a step compares with: a function of its arguments alone, so that a group shares them and any step
can be drawn again.

half_and_half   half from `love`, half from `okay` by largest remainder (the recipe)
adaptive        prefers references that the policy beats 25-75% of the time: what it always or never beats teaches
                nothing. Weight of a reference = probability of that under the fit of reward.strength, plus a little for
                all; a share of the draw is always of tier `love`, so that the taste does not slide to what is easy
easy_to_hard    the pool sorted by strength; a window a third of the pool wide moves from the weakest to the strongest
                as the run goes on
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist

from render.errors import ConfigError
from reward.base import Reference
from reward.pool import TIERS, Pool, shares
from reward.settings import PoolSettings
from reward.strength import Fit

EVEN = math.log(3.0)  # |logit| below which the odds are between 1:3 and 3:1
EXPLORE = 0.05  # weight that every reference has in `adaptive`, however lopsided
WINDOW = 1 / 3  # share of the pool that `easy_to_hard` draws from


def draw_references(
    pool: Pool, settings: PoolSettings, run_seed: int, step: int, steps: int, fit: Fit
) -> tuple[Reference, ...]:
    """The references of one step of `steps`, `love` first. fit: what was learnt from the steps before.

    Raises ConfigError when the pool holds too few.
    """
    count = settings.references
    if settings.reference_policy == "half_and_half":
        return half_and_half(pool, count, run_seed, step)
    generator = _generator(run_seed, step)
    if count > len(pool.references):
        raise ConfigError(f"[pool] references = {count}, but {pool.origin} holds {len(pool.references)}")
    if settings.reference_policy == "adaptive":
        drawn = _adaptive(pool, settings, fit, step, generator)
    else:
        drawn = generator.sample(_window(pool, count, fit, (step - 1) / max(1, steps - 1)), count)
    return tuple(sorted(drawn, key=lambda reference: TIERS.index(reference.tier)))


def half_and_half(pool: Pool, count: int, run_seed: int, step: int) -> tuple[Reference, ...]:
    """`count` references, half from each tier. Raises ConfigError when a tier holds too few."""
    generator = _generator(run_seed, step)
    drawn: list[Reference] = []
    for tier, needed in shares(count).items():
        candidates = pool.tier(tier)
        if needed > len(candidates):
            raise ConfigError(
                f"[pool] needs {needed} paintings of tier {tier}, but {pool.origin} holds {len(candidates)}"
            )
        drawn += generator.sample(candidates, needed)
    return tuple(drawn)


def _generator(run_seed: int, step: int) -> random.Random:
    return random.Random(f"references {run_seed} {step}")


def _adaptive(pool: Pool, settings: PoolSettings, fit: Fit, step: int, generator: random.Random) -> list[Reference]:
    loved = min(math.ceil(settings.references * settings.love_floor), len(pool.tier("love")))
    drawn = _weighted(pool.tier("love"), fit, step, loved, generator)
    rest = [reference for reference in pool.references if reference not in drawn]
    return drawn + _weighted(rest, fit, step, settings.references - loved, generator)


def _weighted(
    candidates: Sequence[Reference], fit: Fit, step: int, count: int, generator: random.Random
) -> list[Reference]:
    """`count` of the candidates without replacement, by weight (Efraimidis and Spirakis 2006: the largest u^(1/w))."""

    def key(reference: Reference) -> float:
        return math.log(1.0 - generator.random()) / (EXPLORE + teaching(fit, reference.name, step))

    return sorted(candidates, key=key, reverse=True)[:count]


def teaching(fit: Fit, name: str, step: int) -> float:
    """Probability that the policy beats this reference between a quarter and three quarters of the time."""
    mean, deviation = fit.advantage(name, step)
    belief = NormalDist(mean, max(deviation, 1e-6))
    return belief.cdf(EVEN) - belief.cdf(-EVEN)


def _window(pool: Pool, count: int, fit: Fit, progress: float) -> list[Reference]:
    ordered = sorted(pool.references, key=lambda reference: (fit.strength(reference.name)[0], reference.name))
    # Before anything is known, every reference is as strong as the next: the tiers tell the easy ones.
    if not fit.steps:
        ordered.sort(key=lambda reference: -TIERS.index(reference.tier))
    width = max(count, round(WINDOW * len(ordered)))
    start = round(progress * (len(ordered) - width))
    return ordered[start : start + width]
