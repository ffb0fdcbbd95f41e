"""What a report says of rollouts. `thirds`: the rollouts of each third of the steps; a third may hold none.

A rejected rollout is scored, with 0.0; an unscored one has no part in any share or mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from grpo.advantage import advantages
from grpo.report.diversity import Group
from grpo.report.numbers import LOW, correlation, correlation_inside, parts_of_rise
from grpo.report.source import Sample

Thirds = Sequence[Sequence[Sample]]


def below(thirds: Thirds) -> dict[str, Any]:
    """Scored rollouts whose reward is below LOW, how many of these were rejected, and their share."""
    scored = [[sample for sample in part if sample.reward is not None] for part in thirds]
    low = [[sample for sample in part if _reward(sample) < LOW] for part in scored]
    return {
        "limit": LOW,
        "count": [len(part) for part in low],
        "rejected": [sum(sample.outcome == "rejected" for sample in part) for part in low],
        "scored": [len(part) for part in scored],
        "share": [len(few) / len(part) if part else None for few, part in zip(low, scored, strict=True)],
    }


def rise(thirds: Thirds) -> dict[str, Any] | None:
    """Where the rise from the first to the last third came from; None where there is only one, or one has no score."""
    if len(thirds) < 2:
        return None
    first, last = ([_reward(one) for one in part if one.reward is not None] for part in (thirds[0], thirds[-1]))
    found = parts_of_rise(first, last)
    return None if found is None else asdict(found)


def correlations(thirds: Thirds) -> dict[str, Any]:
    """Of reward with what was really drawn, over painted rollouts; over all scored ones where none is."""
    scored = [sample for part in thirds for sample in part if sample.reward is not None]
    painted = [sample for sample in scored if sample.coverage is not None]
    chosen = painted or scored
    groups_of, rewards = [(one.step, one.group) for one in chosen], [_reward(one) for one in chosen]
    found: dict[str, Any] = {"painted": bool(painted), "rollouts": len(chosen)}
    for name, values in (
        ("coverage", [sample.coverage for sample in chosen]),
        ("tokens", [float(sample.tokens) for sample in chosen]),
        ("shapes", [sample.shapes for sample in chosen]),
    ):
        there = [value for value in values if value is not None]
        whole = len(there) == len(chosen)
        found[name] = {
            "all": correlation(rewards, there) if whole else None,
            "inside_groups": correlation_inside(groups_of, rewards, there) if whole else None,
        }
    return found


def groups(thirds: Thirds) -> dict[str, Any]:
    """Groups that gave no gradient, by kind: a count for each third."""
    found: dict[str, Any] = {"all": [], "zero_spread": [], "unscored": [], "shares": None}
    for part in thirds:
        rewards: dict[Group, list[float | None]] = {}
        for sample in part:
            rewards.setdefault((sample.step, sample.group), []).append(sample.reward)
        stats = [advantages(group, len(group))[1][0] for group in rewards.values() if len(group) > 1]
        found["all"].append(len(stats))
        found["zero_spread"].append(sum(group.zero_spread for group in stats))
        found["unscored"].append(sum(group.unscored for group in stats))
    return found


def reasons(thirds: Thirds) -> dict[str, Any]:
    """Why rollouts were rejected or not scored: for each reason a count for each third, the commonest first; and the
    commonest causes in full."""
    found: dict[str, Any] = {}
    for outcome in ("rejected", "unscored"):
        counts = [Counter(one.reason or "?" for one in part if one.outcome == outcome) for part in thirds]
        total: Counter[str] = sum(counts, Counter())
        found[outcome] = {reason: [count[reason] for count in counts] for reason, _ in total.most_common()}
    causes = Counter(one.cause for part in thirds for one in part if one.outcome == "unscored" and one.cause)
    found["unscored_causes"] = dict(causes.most_common(10))
    return found


def _reward(sample: Sample) -> float:
    assert sample.reward is not None
    return sample.reward
