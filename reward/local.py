"""Two stand-ins that need no weights: a preference scorer and a pairwise judge made of painting statistics.

They take the places of HPSv3 and of a vision-language judge on machines that have neither, and say so wherever they
show. Both learn from the pool alone and know nothing but `reward.features`; neither maximises a raw statistic (noise
wins every raw statistic), both ask how unusual a painting is among the pool's.

PreferenceStandIn   z_i = (statistic - pool median) / hypot(1.4826 MAD, unit_i); a statistic within one scale is fully
                    usual, beyond it the credit falls as a Cauchy curve, so that even a far painting feels a slope;
                    mean within a group of statistics, geometric mean over the groups (one impossible group spoils the
                    painting); then a lift along the direction from `okay` to `love`: a linear discriminant with
                    the covariance shrunk to its diagonal.
PoolJudgeStandIn    distance to the `love` tier: mean distance to its 3 nearest paintings in the standardised space,
                    large differences compressed. P(first wins) = d_second^p / (d_first^p + d_second^p), the
                    Bradley-Terry model with strengths d^-p; asked in both orders, averaged over the references.

What they cannot do: see what is depicted. A new kind of beauty that the pool lacks is unusual to them.
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

Vector = NDArray[np.float64]

# Group and unit of each statistic: the difference that the eye just takes for another hand. A pool is small, and
# one whose paintings agree by chance must not make a hair's breadth count as far away.
STATISTICS: dict[str, tuple[str, float]] = {
    "paper_light": ("paper", 3.0),
    "paper_chroma": ("paper", 3.0),
    "chroma": ("pigment", 5.0),
    "chroma_spread": ("pigment", 3.0),
    "colourfulness": ("pigment", 10.0),
    "warm_share": ("pigment", 0.12),
    "cold_share": ("pigment", 0.10),
    "mud": ("pigment", 0.08),
    "hue_entropy": ("pigment", 0.12),
    "hue_unity": ("pigment", 0.10),
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
    "coverage": ("layout", 0.08),
    "centre_x": ("layout", 0.05),
    "centre_y": ("layout", 0.07),
    "reach": ("layout", 0.05),
    "border": ("layout", 0.04),
    "solidity": ("layout", 0.12),
    "outline": ("layout", 0.25),
    "mirror": ("layout", 0.15),
    "largest_piece": ("layout", 0.08),
    "pieces": ("layout", 0.4),
    "repeats": ("layout", 0.12),
    "head_size": ("head", 0.05),
    "head_share": ("head", 0.15),
    "head_x": ("head", 0.06),
    "head_y": ("head", 0.08),
    "lobes": ("head", 0.5),
    "ragged": ("head", 0.4),
    "rotation": ("head", 0.15),
    "petal_variation": ("head", 4.0),
    "notches": ("head", 1.5),
    "angular": ("head", 0.15),
    "petal_rhythm": ("head", 0.12),
    "green_area": ("head", 0.10),
}
NAMES = tuple(STATISTICS)
GROUPS = tuple(dict.fromkeys(group for group, _ in STATISTICS.values()))
UNITS = np.array([unit for _, unit in STATISTICS.values()])
BLANK_BELOW = 0.005
NEIGHBOURS = 3
VARIATIONS = 2
COUNTERFEITS = 6
RIDGE = 0.1
TOLERANCE = 2.0
DOUBT = 0.4
POWER = -1.0
LIFT = 0.35
STEEPNESS = 2.0
FAR = 100.0
MEMBERS = {group: [index for index, name in enumerate(NAMES) if STATISTICS[name][0] == group] for group in GROUPS}


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

    The critic is a regularised least-squares classifier (targets +1 and -1, classes weighted alike, ridge) over the
    compressed statistics and their absolute values: the pool and honest variations of it against its counterfeits.
    """

    def __init__(self, pool: Pool) -> None:
        self.tiers = {name: [reference.png for reference in pool.tier(name)] for name in ("love", "okay")}
        if min(map(len, self.tiers.values())) < 2:
            raise ConfigError(f"the stand-in scorers need at least 2 paintings of each tier; {pool.origin} has fewer")
        love, okay = (np.array([statistics(png) for png in self.tiers[name]]) for name in ("love", "okay"))
        self.space = Space(np.vstack([love, okay]))
        self.love, self.okay = self.space.z(love), self.space.z(okay)
        lessons = [_lesson(png) for tier in self.tiers.values() for png in tier]
        honest = np.vstack([love, okay, *(good for good, _ in lessons)])
        forged = np.vstack([bad for _, bad in lessons])
        self.critic = self._fit(self.space.z(honest), self.space.z(forged))

    @staticmethod
    def _inputs(z: NDArray[np.float64]) -> NDArray[np.float64]:
        near = compressed(np.atleast_2d(z))
        return np.hstack([near, np.abs(near), np.ones((len(near), 1))])

    def _fit(self, honest: NDArray[np.float64], forged: NDArray[np.float64]) -> Vector:
        rows = self._inputs(np.vstack([honest, forged]))
        target = np.r_[np.ones(len(honest)), -np.ones(len(forged))]
        weight = np.r_[np.full(len(honest), 0.5 / len(honest)), np.full(len(forged), 0.5 / len(forged))]
        ridge = RIDGE * np.eye(rows.shape[1])
        ridge[-1, -1] = 0.0
        return np.asarray(
            np.linalg.solve((rows * weight[:, None]).T @ rows + ridge, (rows * weight[:, None]).T @ target)
        )

    def genuine(self, z: Vector) -> float:
        """How far a painting is from a counterfeit: about +1 for the pool, about -1 for a counterfeit."""
        return float((self._inputs(z) @ self.critic)[0])


def compressed(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """z where it is small, growing like a logarithm where it is large: very far and far are nearly the same."""
    return np.asarray(np.arcsinh(z / 2.0) * 2.0)


@lru_cache(maxsize=512)
def _lesson(png: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Statistics of the variations and of the counterfeits of one painting, the same in every process."""
    picture, seed = decode(png), zlib.crc32(png)
    return tuple(
        np.array([_vector(measure_picture(made)) for made in make(picture, seed, count)])
        for make, count in ((variations, VARIATIONS), (counterfeits, COUNTERFEITS))
    )  # type: ignore[return-value]


class PreferenceStandIn:
    """Term `preference`: how usual the painting's statistics are in the pool, lifted where it leans to `love`."""

    name = "preference"
    stand_in = True

    def __init__(self, study: Study) -> None:
        self.study = study
        love, okay = (np.clip(tier, -3, 3) for tier in (study.love, study.okay))
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
        groups["form"] = sigmoid((self.study.genuine(z) - DOUBT) / 0.12)
        usual = float(np.mean([credit**POWER for credit in groups.values()]) ** (1.0 / POWER))
        along = float(np.clip(z, -3, 3) @ self.direction)
        lean = (along - self.okay_end) / (self.love_end - self.okay_end)
        value = usual * (1.0 - LIFT + LIFT * sigmoid(2.0 * (lean - 0.5)))
        return Score(float(value), {"usual": usual, "lean": lean, **groups})


class PoolJudgeStandIn:
    """Term `judge`: the candidate beside each reference, in both orders, by closeness to the `love` tier."""

    name = "judge"
    stand_in = True

    def __init__(self, study: Study) -> None:
        self.study = study
        self.love = compressed(study.love)
        # A judge must not know a reference by heart: a loved reference is measured against the rest of its tier.
        self.known = {png: index for index, png in enumerate(study.tiers["love"])}

    def score(self, candidate: Candidate, references: Sequence[Reference]) -> Score:
        if candidate.painting is None or candidate.painting.png is None:
            return Score(None, cause="there is no painting")
        if not references:
            return Score(None, cause="there is no reference")
        png = candidate.painting.png
        won = {reference.name: self.compare(png, reference.png) for reference in references}
        return Score(float(np.mean(list(won.values()))), {"won": won, "distance": self.distance(png)})

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
        to_each = np.sqrt(((self.love - compressed(z)) ** 2).mean(axis=1))
        if png in self.known:
            to_each = np.delete(to_each, self.known[png])
        near = float(np.sort(to_each)[:NEIGHBOURS].mean())
        return near + max(0.0, 1.0 - self.study.genuine(z)) + 1e-6


def sigmoid(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))
