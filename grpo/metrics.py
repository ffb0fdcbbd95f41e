"""The columns of a run's table, and those of a step's metrics that come from its rollouts.

TRL's names where the meaning is TRL's, so that runs can be laid side by side.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from grpo.advantage import GroupStats
from grpo.rollout import Rollout
from reward.judge import Totals

TERMS = ("gate", "length", "coverage", "preference", "judge")
# Of reward.judge.Totals, as the difference that a step made.
JUDGE_COUNTS = (
    "calls",
    "answers",
    "cached",
    "retries",
    "missing",
    "tokens_in",
    "tokens_out",
    "cost",
    "outages",
    "waited_s",
)
COLUMNS = [
    "step",
    "loss",
    "grad_norm",
    "learning_rate",
    "reward",
    "reward_std",
    "reward_median",
    "reward_best",
    "frac_reward_zero_std",
    "frac_unscored_groups",
    "reward_adjusted",
    *(f"rewards/{term}/{part}" for term in TERMS for part in ("mean", "std")),
    "rollouts/scored",
    "rollouts/rejected",
    "rollouts/unscored",
    "rollouts/distinct",
    "coverage",
    "shapes",
    "fills",
    "entropy",
    "kl",
    "clip_ratio/low_mean",
    "clip_ratio/high_mean",
    "clip_ratio/region_mean",
    "ratio_mean",
    "log_ratio_abs_mean",
    "completions/mean_length",
    "completions/min_length",
    "completions/max_length",
    "completions/clipped_ratio",
    "completions/mean_terminated_length",
    "num_tokens",
    "updates",
    "micro_batch_size",
    "rows_at_once",
    "attempts",
    "references",
    "draw/difficulty",
    "draw/effect",
    "preference/mu",
    "preference/log_sigma",
    "judge/bias",
    "judge/split",
    *(f"judge/{part}" for part in JUDGE_COUNTS),
    "judge/faults",
    "step_time",
    "time/sample",
    "time/paint_waited",
    "time/score",
    "time/train",
]


def summarise(rollouts: list[Rollout], groups: list[GroupStats]) -> dict[str, Any]:
    """The step's metrics that come from its rollouts."""
    return {
        **of_rollouts(rollouts),
        "frac_reward_zero_std": sum(group.zero_spread for group in groups) / len(groups),
        "frac_unscored_groups": sum(group.unscored for group in groups) / len(groups),
    }


def of_rollouts(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Rewards, outcomes, terms and lengths. Means are over what was scored; None where nothing was."""
    rewards = [rollout.reward for rollout in rollouts if rollout.reward is not None]
    lengths = [len(rollout.completion_ids) for rollout in rollouts]
    ended = [len(rollout.completion_ids) for rollout in rollouts if rollout.finished]
    painted = [rollout.painting for rollout in rollouts if rollout.painting is not None and rollout.painting.painted]
    metrics: dict[str, Any] = {
        "reward": _mean(rewards),
        "reward_std": _deviation(rewards),
        "reward_median": statistics.median(rewards) if rewards else None,
        "reward_best": max(rewards, default=None),
        "rollouts/distinct": len({rollout.completion_ids for rollout in rollouts}),
        "coverage": _mean([painting.coverage for painting in painted]),
        "shapes": _mean([float(painting.shapes) for painting in painted]),
        "fills": _mean([float(info["count"]) for info in (info_of(one, "fills") for one in rollouts) if info]),
        "completions/mean_length": _mean([float(length) for length in lengths]),
        "completions/min_length": min(lengths),
        "completions/max_length": max(lengths),
        "completions/clipped_ratio": sum(not rollout.finished for rollout in rollouts) / len(rollouts),
        "completions/mean_terminated_length": _mean([float(length) for length in ended]),
    }
    for outcome in ("scored", "rejected", "unscored"):
        metrics[f"rollouts/{outcome}"] = sum(rollout.outcome == outcome for rollout in rollouts)
    for term in TERMS:
        values = [
            score.value
            for rollout in rollouts
            if rollout.verdict is not None
            for name, score in rollout.verdict.terms.items()
            if name == term and score.value is not None
        ]
        metrics[f"rewards/{term}/mean"] = _mean(values)
        metrics[f"rewards/{term}/std"] = _deviation(values)
    return metrics


def scorers(rollouts: list[Rollout], calls: Totals) -> dict[str, Any]:
    """What the scorers say of themselves: HPSv3's raw numbers, the judge's bias and ties, and what asking it took."""
    judged = [info_of(rollout, "judge") for rollout in rollouts]
    preferred = [info_of(rollout, "preference") for rollout in rollouts]
    split = [float(info["split"]) for info in judged if info.get("split") is not None]
    return {
        **{f"preference/{key}": _mean([info[key] for info in preferred if key in info]) for key in ("mu", "log_sigma")},
        "judge/bias": _mean([info["bias"] for info in judged if info.get("bias") is not None]),
        "judge/split": sum(split) if split else None,
        **{f"judge/{part}": getattr(calls, part) for part in JUDGE_COUNTS},
        "judge/faults": " ".join(f"{kind}:{count}" for kind, count in sorted(calls.faults.items()) if count),
    }


def info_of(rollout: Rollout, term: str) -> dict[str, Any]:
    """The details of one term's score; empty where the term was not asked."""
    score = rollout.verdict.terms.get(term) if rollout.verdict else None
    return score.info if score else {}


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _deviation(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
