"""How strong each reference of the pool is, learnt from all comparisons so far, so that the luck of the draw can be
taken out of the reward curve.

Bradley-Terry (1952) with a policy that moves: a painting of step t beats reference r with probability
sigmoid(theta_t - beta_r). theta is a random walk over the steps; beta_r = mu_tier + delta_r, so that a reference that
was never drawn is thought to be like the others of its tier. Gaussian priors; the fit is the mode of the posterior by
Newton's method, its uncertainty the inverse Hessian (Laplace). Refitted from the whole record at each step: a few
hundred unknowns, some milliseconds, and a resumed run has the same numbers without any state to save.

Values between 0 and 1 (a split, a soft preference) count as shares of a win. Paintings of a group are taken as
independent, which they are not quite, so the uncertainty is a little too small.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reward.base import Reference
from reward.pool import TIERS, Pool

Vector = NDArray[np.float64]

START_SD = 2.0  # of theta at the first step and of each tier's mean, in logits
WALK_SD = 0.3  # of theta from one step to the next
WITHIN_SD = 1.0  # of a reference around the mean of its tier
ROUNDS = 50  # of Newton's method, which takes five or so
SETTLED = 1e-10  # largest change of a logit at which the fit has settled


@dataclass(frozen=True)
class Fit:
    """The posterior of one record. names: the references in order; steps: those that brought a comparison, in order.

    mean, covariance: of [theta of each step, mean of each tier, delta of each reference], in logits.
    """

    names: tuple[str, ...]
    tiers: tuple[str, ...]
    steps: tuple[int, ...]
    mean: Vector
    covariance: NDArray[np.float64]

    def strength(self, name: str) -> tuple[float, float]:
        """Mean and standard deviation of beta, in logits."""
        index = self.names.index(name)
        return float(self._strengths[index]), math.sqrt(self._variances[index])

    def advantage(self, name: str, step: int) -> tuple[float, float]:
        """Mean and standard deviation of theta - beta at the last known step up to `step` (the first one before it)."""
        means, deviations = self._advantages(step)
        index = self.names.index(name)
        return float(means[index]), float(deviations[index])

    def win_rate(self, name: str, step: int) -> float:
        """Expected share of wins against a reference, the uncertainty averaged out by MacKay's (1992) approximation
        sigmoid(m / sqrt(1 + pi s^2 / 8))."""
        return float(self._win_rates(step)[self.names.index(name)])

    def effect(self, draw: Sequence[str], step: int) -> float:
        """What the draw adds to a step's mean judge score, in 0..1: above 0 where the references were easy. The pool
        that it is measured against has both tiers with the same weight, as a draw half and half has."""
        return self._above_pool(draw, self._win_rates(step))

    def difficulty(self, draw: Sequence[str]) -> float:
        """Mean strength of the drawn references above that of the pool, in logits."""
        return self._above_pool(draw, self._strengths)

    def _above_pool(self, draw: Sequence[str], values: Vector) -> float:
        own = statistics.fmean(float(values[self.names.index(name)]) for name in draw)
        return own - statistics.fmean(float(values[np.array(self.tiers) == tier].mean()) for tier in TIERS)

    def _win_rates(self, step: int) -> Vector:
        means, deviations = self._advantages(step)
        return np.asarray(1.0 / (1.0 + np.exp(-means / np.sqrt(1.0 + math.pi * deviations**2 / 8.0))))

    def _advantages(self, step: int) -> tuple[Vector, Vector]:
        """Means and standard deviations of theta - beta against every reference."""
        place = self.place(step)
        # What theta may have moved since the last comparison.
        drift = WALK_SD**2 * max(0, step - self.steps[-1]) if self.steps else 0.0
        variances = self.covariance[place, place] + drift - 2.0 * self._shared[place] + self._variances
        return self.mean[place] - self._strengths, np.sqrt(np.maximum(variances, 0.0))

    def place(self, step: int) -> int:
        """Where theta of a step stands among the unknowns."""
        return max(0, sum(known <= step for known in self.steps) - 1)

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        """(references, unknowns): which unknowns make beta of each reference."""
        first = max(1, len(self.steps))
        rows = np.zeros((len(self.names), len(self.mean)))
        for index, tier in enumerate(self.tiers):
            rows[index, [first + TIERS.index(tier), first + len(TIERS) + index]] = 1.0
        return rows

    @cached_property
    def _strengths(self) -> Vector:
        return np.asarray(self.rows @ self.mean)

    @cached_property
    def _shared(self) -> NDArray[np.float64]:
        """(unknowns, references): covariance of each unknown with each beta."""
        return np.asarray(self.covariance @ self.rows.T)

    @cached_property
    def _variances(self) -> Vector:
        return np.asarray((self.rows * self._shared.T).sum(axis=1))


class Strengths:
    """The record of a run's comparisons."""

    def __init__(self, pool: Pool) -> None:
        self.references = pool.references
        self._won: dict[tuple[int, str], list[float]] = {}
        self._fit: Fit | None = None

    def add(self, step: int, won: Sequence[Mapping[str, float]]) -> None:
        """The comparisons of one step: for each painting, what it won (0..1) against each reference by name."""
        for painting in won:
            for name, value in painting.items():
                self._won.setdefault((step, name), []).append(value)
        self._fit = None

    def fit(self) -> Fit:
        """The posterior given everything added so far."""
        if self._fit is None:
            self._fit = _newton(self.references, self._won)
        return self._fit


def _newton(references: Sequence[Reference], won: Mapping[tuple[int, str], list[float]]) -> Fit:
    names = tuple(reference.name for reference in references)
    tiers = tuple(reference.tier for reference in references)
    steps = tuple(sorted({step for step, _ in won}))
    first = max(1, len(steps))
    size = first + len(TIERS) + len(names)
    prior = _prior(steps, first, size)
    fit = Fit(names, tiers, steps, np.zeros(size), np.eye(size))
    # The row of an observation is theta_step - beta_reference.
    rows = np.zeros((len(won), size))
    for row, (step, name) in zip(rows, won, strict=True):
        row[fit.place(step)] = 1.0
        row -= fit.rows[names.index(name)]
    wins = np.array([math.fsum(values) for values in won.values()])
    counts = np.array([float(len(values)) for values in won.values()])

    def objective(point: Vector) -> float:
        logits = rows @ point
        return float(wins @ logits - counts @ np.logaddexp(0.0, logits) - 0.5 * point @ prior @ point)

    point = np.zeros(size)
    for _ in range(ROUNDS):
        share = 1.0 / (1.0 + np.exp(-(rows @ point)))
        gradient = rows.T @ (wins - counts * share) - prior @ point
        hessian = (rows.T * (counts * share * (1.0 - share))) @ rows + prior
        move = np.linalg.solve(hessian, gradient)
        here, length = objective(point), 1.0
        # The objective is strictly concave: a short enough step always rises, up to rounding.
        while objective(point + length * move) < here - 1e-9 and length > 1e-6:
            length /= 2.0
        point = point + length * move
        if np.abs(length * move).max() < SETTLED:
            break
    share = 1.0 / (1.0 + np.exp(-(rows @ point)))
    hessian = (rows.T * (counts * share * (1.0 - share))) @ rows + prior
    return Fit(names, tiers, steps, point, np.asarray(np.linalg.inv(hessian), dtype=np.float64))


def _prior(steps: Sequence[int], first: int, size: int) -> NDArray[np.float64]:
    """Precision matrix of the Gaussian priors."""
    precision = np.zeros((size, size))
    precision[0, 0] = START_SD**-2
    for index in range(1, len(steps)):
        walk = 1.0 / (WALK_SD**2 * (steps[index] - steps[index - 1]))
        precision[index, index] += walk
        precision[index - 1, index - 1] += walk
        precision[index, index - 1] -= walk
        precision[index - 1, index] -= walk
    tiers = range(first, first + len(TIERS))
    precision[tiers, tiers] = START_SD**-2
    references = range(first + len(TIERS), size)
    precision[references, references] = WITHIN_SD**-2
    return precision
