"""Two stand-ins that need no weights: a preference scorer and a pairwise judge made of painting statistics.

They take the places of HPSv3 and of a vision-language judge on machines that have neither, and say so wherever they
show. Both learn from the pool alone, through one `Study` of it, and know a picture only by `reward.features`. Neither
maximises a raw statistic (noise wins every raw statistic): both ask how usual a painting is among the pool's, and a
critic trained on counterfeits asks whether its pigment has the form of a painting at all.

Study              z_i = (statistic - pool median) / hypot(1.4826 MAD, unit_i). The critic tells the pool from its
                   counterfeits (reward.counterfeits): non-negative ridge regression on the deviations from the
                   median, plus a comparison of the nearest honest and the nearest forged examples.
PreferenceStandIn  credit of a group of statistics = exp(-mean log(1 + (z / 2)^2)), the geometric mean of Cauchy
                   curves, so that even a far painting feels a slope; the critic's credit is a logistic curve;
                   harmonic mean over the groups (one impossible group spoils the painting); times a lift along the
                   direction from `okay` to `love`, a linear discriminant with shrunk covariance; less where the
                   colour is flatter than any pigment.
PoolJudgeStandIn   distance to the `love` tier = root mean square difference from its 3 nearest paintings (z with
                   large values compressed) plus the critic's doubt. P(first wins) = d_second^k / (d_first^k +
                   d_second^k), the Bradley-Terry model with strengths d^-k. reward.judge asks it in both orders and
                   averages over the references. It has no bias for an order, so its two answers always agree.

What they cannot do: see what is depicted. A new kind of beauty that the pool lacks is merely unusual to them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from render.errors import ConfigError
from render.pixels import decode
from reward.base import Candidate, Reference, Score
from reward.counterfeits import counterfeits, variations
from reward.features import measure, measure_picture
from reward.pool import Pool
from reward.verdict import Answer, Prompt

Vector = NDArray[np.float64]

# Group and unit of each statistic: the difference that the eye just takes for another hand. A pool is small, and
# one whose paintings agree by chance must not make a hair's breadth count as far away.
STATISTICS: dict[str, tuple[str, float]] = {
    "paper_light": ("paper", 3.0),
    "paper_chroma": ("paper", 3.0),
    "chroma": ("strength", 5.0),
    "chroma_spread": ("strength", 3.0),
    "colourfulness": ("strength", 10.0),
    "warm_share": ("hue", 0.12),
    "cold_share": ("hue", 0.10),
    "mud": ("hue", 0.08),
    "hue_entropy": ("hue", 0.12),
    "hue_unity": ("hue", 0.10),
    "value_range": ("value", 6.0),
    "depth": ("value", 6.0),
    "dark_share": ("value", 0.08),
    "translucency": ("value", 0.12),
    "tone_entropy": ("value", 0.08),
    "softness": ("edge", 0.04),
    "calm": ("edge", 0.04),
    "spectral_slope": ("edge", 0.2),
    "edge_entropy": ("edge", 0.01),
    "edge_density": ("edge", 0.2),
    "hard_rim": ("edge", 0.15),
    "granulation": ("edge", 0.3),
    "modelling": ("edge", 0.3),
    "inner_edges": ("edge", 0.06),
    "flat": ("edge", 0.05),
    "coverage": ("size", 0.08),
    "centre_x": ("place", 0.05),
    "centre_y": ("place", 0.07),
    "reach": ("size", 0.05),
    "border": ("place", 0.04),
    "solidity": ("shape", 0.12),
    "outline": ("shape", 0.25),
    "mirror": ("shape", 0.15),
    "largest_piece": ("shape", 0.08),
    "pieces": ("shape", 0.4),
    "repeats": ("shape", 0.12),
    "head_size": ("size", 0.05),
    "head_share": ("head", 0.15),
    "head_x": ("place", 0.06),
    "head_y": ("place", 0.08),
    "lobes": ("head", 0.5),
    "ragged": ("head", 0.4),
    "rotation": ("head", 0.15),
    "petal_variation": ("head", 4.0),
    "notches": ("head", 0.35),
    "angular": ("head", 0.15),
    "petal_rhythm": ("head", 0.12),
    "green_area": ("head", 0.10),
}
NAMES = tuple(STATISTICS)
GROUPS = tuple(dict.fromkeys(group for group, _ in STATISTICS.values()))
UNITS = np.array([unit for _, unit in STATISTICS.values()])
MEMBERS = {group: [index for index, name in enumerate(NAMES) if STATISTICS[name][0] == group] for group in GROUPS}

BLANK_BELOW = 0.005  # share of paint under which a canvas is blank to both stand-ins
TOLERANCE = 2.0  # |z| at which a statistic keeps half its credit
CLIP = 3.0  # |z| beyond which a statistic says no more about love or okay
FLAT = 5.0  # z of `flat` beyond which colour is no pigment: the preference falls in proportion
LIFT = 0.35  # share of the preference that the lean towards love decides
DOUBT, DOUBT_WIDTH = 0.35, 0.2  # the critic's answer at which a painting keeps half its credit, and the curve's width
STEEPNESS = 1.5  # exponent of the distances in the judge's Bradley-Terry model
NEIGHBOURS = 3  # loved paintings that make the distance to the tier
FAR = 100.0  # distance of a blank canvas
LESSONS = 40  # paintings of the pool that the critic learns from, at most
VARIATIONS, COUNTERFEITS = 2, 6  # pictures made of each of them
RIDGE = 0.03  # of the critic's regression
KINSHIP = 3.0  # weight of the nearest examples in the critic's answer
TRUSTED = 0.6  # the critic's answer from which the judge has no doubt
SWEEPS = 200  # of its coordinate descent, which has settled to 1e-6 by then


def statistics(png: bytes) -> Vector:
    """(number of NAMES,) statistics of a painting, in the order of NAMES."""
    return _vector(measure(png))


def _vector(found: dict[str, float]) -> Vector:
    return np.array([found[name] for name in NAMES])


class Space:
    """Statistics standardised by the pool: z = (statistic - median) / hypot(1.4826 MAD, unit)."""

    def __init__(self, paintings: NDArray[np.float64]) -> None:
        self.middle: Vector = np.median(paintings, axis=0)
        self.scale: Vector = np.hypot(1.4826 * np.median(np.abs(paintings - self.middle), axis=0), UNITS)

    def z(self, paintings: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((paintings - self.middle) / self.scale)


class Study:
    """What both stand-ins learn from a pool: the standardised space, the two tiers in it, and the critic.

    The critic tells the pool and honest variations of it (+1) from its counterfeits (-1), in two ways that it adds up:
    least squares that can only charge for deviations from the pool's median, so that no statistic can be pushed up to
    make good for another; and whether the two nearest examples are honest or forged.
    """

    def __init__(self, pool: Pool) -> None:
        self.tiers = {name: [reference.png for reference in pool.tier(name)] for name in ("love", "okay")}
        if min(map(len, self.tiers.values())) < 2:
            raise ConfigError(f"the stand-in scorers need at least 2 paintings of each tier; {pool.origin} has fewer")
        love, okay = (np.array([statistics(png) for png in self.tiers[name]]) for name in ("love", "okay"))
        self.space = Space(np.vstack([love, okay]))
        self.love, self.okay = self.space.z(love), self.space.z(okay)
        paintings = [png for tier in self.tiers.values() for png in tier]
        lessons = [_lesson(png) for png in paintings[:: -(-len(paintings) // LESSONS)]]
        self.honest = compressed(self.space.z(np.vstack([love, okay, *(good for good, _ in lessons)])))
        self.forged = compressed(self.space.z(np.vstack([bad for _, bad in lessons])))
        self.penalties, self.intercept = self._fit()

    def _fit(self) -> tuple[Vector, float]:
        """Penalties and intercept: ridge regression with penalties of 0 or more, by cyclic coordinate descent."""
        rows = _deviations(np.vstack([self.honest, self.forged]))
        sizes = len(self.honest), len(self.forged)
        target = np.repeat([1.0, -1.0], sizes)
        weight = np.repeat([0.5 / sizes[0], 0.5 / sizes[1]], sizes)
        centre = weight @ rows
        weighted = (rows - centre) * weight[:, None]
        gram = weighted.T @ (rows - centre) + RIDGE * np.eye(rows.shape[1])
        pull = -weighted.T @ target
        penalties = np.zeros(rows.shape[1])
        for _ in range(SWEEPS):
            for index in range(len(penalties)):
                rest = pull[index] - gram[index] @ penalties + gram[index, index] * penalties[index]
                penalties[index] = max(0.0, rest / gram[index, index])
        return penalties, float(penalties @ centre)

    def genuine(self, z: Vector) -> float:
        """The critic's answer: 1 and more for most of the pool, below 0 for what looks like a counterfeit."""
        near = compressed(z)
        charged = self.intercept - float(_deviations(near[None])[0] @ self.penalties)
        to_honest, to_forged = (_nearest(near, examples, 2) for examples in (self.honest, self.forged))
        return charged + KINSHIP * (to_forged - to_honest) / (to_forged + to_honest)


def _deviations(near: NDArray[np.float64]) -> NDArray[np.float64]:
    """(paintings, 2 x NAMES): how far above and how far below the pool's median, both 0 or more."""
    return np.hstack([np.maximum(near, 0.0), np.maximum(-near, 0.0)])


def _nearest(point: Vector, examples: NDArray[np.float64], count: int) -> float:
    """Mean of the root mean square differences from the `count` nearest examples, above 0."""
    distances = np.sqrt(((examples - point) ** 2).mean(axis=1))
    return float(np.sort(distances)[:count].mean()) + 1e-6


def compressed(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """z where it is small, growing like a logarithm where it is large: very far and far are nearly the same."""
    return np.asarray(np.arcsinh(z / 2.0) * 2.0)


@lru_cache(maxsize=256)
def _lesson(png: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Statistics of the variations and of the counterfeits of one painting, the same in every process."""
    picture, seed = decode(png), zlib.crc32(png)
    honest = [_vector(measure_picture(made)) for made in variations(picture, seed, VARIATIONS)]
    forged = [_vector(measure_picture(made)) for made in counterfeits(picture, seed, COUNTERFEITS)]
    return np.array(honest), np.array(forged)


class PreferenceStandIn:
    """Term `preference`: how usual the painting's statistics are in the pool, lifted where it leans to `love`."""

    name = "preference"
    stand_in = True

    def __init__(self, study: Study) -> None:
        self.study = study
        love, okay = (np.clip(tier, -CLIP, CLIP) for tier in (study.love, study.okay))
        within = np.vstack([love - love.mean(axis=0), okay - okay.mean(axis=0)])
        covariance = within.T @ within / (len(within) - 2)
        shrunk = 0.2 * covariance + 0.8 * np.diag(np.diag(covariance)) + 0.5 * np.eye(len(NAMES))
        self.direction: Vector = np.linalg.solve(shrunk, love.mean(axis=0) - okay.mean(axis=0))
        self.okay_end, self.love_end = (float((tier @ self.direction).mean()) for tier in (okay, love))

    def score(self, candidate: Candidate, references: Sequence[Reference] = ()) -> Score:
        if candidate.painting is None or candidate.painting.png is None:
            return Score(None, cause="there is no painting")
        return self.look(candidate.painting.png)

    def look(self, png: bytes) -> Score:
        """The score of a picture; info holds the credit of each group and the lean towards `love`."""
        if measure(png)["coverage"] < BLANK_BELOW:
            return Score(0.0, {"blank": True})
        z = self.study.space.z(statistics(png))
        surprise = np.log1p((z / TOLERANCE) ** 2)
        groups = {group: float(np.exp(-surprise[members].mean())) for group, members in MEMBERS.items()}
        groups["form"] = sigmoid((self.study.genuine(z) - DOUBT) / DOUBT_WIDTH)
        usual = float(len(groups) / sum(1.0 / max(credit, 1e-6) for credit in groups.values()))
        along = float(np.clip(z, -CLIP, CLIP) @ self.direction)
        lean = (along - self.okay_end) / (self.love_end - self.okay_end)
        value = usual * (1.0 - LIFT + LIFT * sigmoid(2.0 * (lean - 0.5)))
        value *= FLAT / max(FLAT, float(z[NAMES.index("flat")]))
        return Score(float(value), {"usual": usual, "lean": lean, **groups})


class PoolJudgeStandIn:
    """Back end of the judge (reward.judge) that needs no model: the picture nearer to the `love` tier wins."""

    name = "closeness to the loved paintings"
    identity = "stand-in"
    stand_in = True
    concurrent = False
    image_size = 0

    def __init__(self, study: Study) -> None:
        self.study = study
        self.love = compressed(study.love)
        # A judge must not know a reference by heart: a loved reference is measured against the rest of its tier.
        self.known = {png: index for index, png in enumerate(study.tiers["love"])}

    def ask(self, first: bytes, second: bytes, prompt: Prompt) -> Answer:
        return Answer(self.prefers_first(first, second))

    def compare(self, candidate: bytes, reference: bytes) -> float:
        """Share of the two comparisons, candidate first and candidate second, that the candidate wins."""
        return (self.prefers_first(candidate, reference) + 1.0 - self.prefers_first(reference, candidate)) / 2.0

    def prefers_first(self, first: bytes, second: bytes) -> float:
        """Probability that the first of two pictures wins (Bradley-Terry with strengths distance^-STEEPNESS)."""
        own, other = self.distance(first) ** STEEPNESS, self.distance(second) ** STEEPNESS
        return other / (own + other)

    def distance(self, png: bytes) -> float:
        """Mean distance to the nearest loved paintings, itself left out, lengthened where it looks counterfeit."""
        if measure(png)["coverage"] < BLANK_BELOW:
            return FAR
        z = self.study.space.z(statistics(png))
        others = np.delete(self.love, self.known[png], axis=0) if png in self.known else self.love
        doubt = max(0.0, TRUSTED - self.study.genuine(z))
        return _nearest(compressed(z), others, NEIGHBOURS) + doubt


def sigmoid(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))
