"""Rewards of whole groups -> advantages (group-relative policy optimization, Shao et al. 2024, section 4.1).

    A_i = r_i - mean_g                     scale "none"   (Dr. GRPO, Liu et al. 2025)
    A_i = (r_i - mean_g) / (sd_g + eps)    scale "group"  (GRPO)
    A_i = (r_i - mean_g) / (sd_b + eps)    scale "batch"  (the mean stays the group's)

Means and standard deviations (Bessel-corrected) are taken over scored rewards only. A reward of None means that nothing
is known about the rollout: it has no part in any mean or deviation and its advantage is 0. A group with fewer than two
scored rewards, or with all scored rewards equal, has advantage 0 throughout; the two are told apart in GroupStats.

Left out: baselines that leave one out (RLOO), normalisation of each reward term by itself (GDPO).

Shapes: _N rollouts of all groups, group after group; _G rollouts of one group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SCALES = ("none", "group", "batch")


@dataclass(frozen=True)
class GroupStats:
    """What one group's rewards said. `mean` is None without a scored reward, `standard_deviation` without two."""

    size: int
    scored: int
    mean: float | None
    standard_deviation: float | None
    zero_spread: bool  # at least two scored rewards, all of them equal
    unscored: bool  # fewer than two scored rewards: nothing to compare

    @property
    def gives_gradient(self) -> bool:
        return not (self.zero_spread or self.unscored)


def advantages(
    rewards_N: Sequence[float | None], group_size: int, scale: str = "none", epsilon: float = 1e-4
) -> tuple[list[float], list[GroupStats]]:
    """Advantage of every rollout, in the order given, and the statistics of every group.

    rewards_N: groups one after another, `group_size` rewards each, None where there is no score.
    Never NaN. Raises ValueError for a reward that is NaN or infinite, a length that is no multiple of the group size,
    a group size below 2 and an unknown scale.
    """
    if group_size < 2:
        raise ValueError(f"group_size is {group_size}: an advantage compares rollouts, so at least 2 are needed")
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}: allowed are {', '.join(SCALES)}")
    if len(rewards_N) % group_size:
        raise ValueError(f"{len(rewards_N)} rewards do not divide into groups of {group_size}")
    for index, reward in enumerate(rewards_N):
        if reward is not None and not math.isfinite(reward):
            raise ValueError(
                f"reward {index % group_size} of group {index // group_size} is {reward}: "
                "a reward is a finite number, or None for a rollout without a score"
            )

    groups = [rewards_N[start : start + group_size] for start in range(0, len(rewards_N), group_size)]
    stats = [_statistics(rewards_G) for rewards_G in groups]
    batch_deviation = _deviation([reward for reward in rewards_N if reward is not None])

    result_N: list[float] = []
    for rewards_G, group in zip(groups, stats, strict=True):
        divisor = {
            "none": 1.0,
            "group": (group.standard_deviation or 0.0) + epsilon,
            "batch": batch_deviation + epsilon,
        }
        for reward in rewards_G:
            if reward is None or group.mean is None or not group.gives_gradient:
                result_N.append(0.0)
            else:
                result_N.append((reward - group.mean) / divisor[scale])
    return result_N, stats


def _statistics(rewards_G: Sequence[float | None]) -> GroupStats:
    scored = [reward for reward in rewards_G if reward is not None]
    comparable = len(scored) >= 2
    return GroupStats(
        size=len(rewards_G),
        scored=len(scored),
        mean=_mean(scored) if scored else None,
        standard_deviation=_deviation(scored) if comparable else None,
        zero_spread=comparable and max(scored) == min(scored),
        unscored=not comparable,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _deviation(values: Sequence[float]) -> float:
    """Bessel-corrected standard deviation; 0 for fewer than two values and exactly 0 when all are equal."""
    if len(values) < 2 or max(values) == min(values):
        return 0.0
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
