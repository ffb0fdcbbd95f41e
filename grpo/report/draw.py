"""The luck of the draw of references over a whole run, as grpo.trainer has it in curve.png: the judge's comparisons are
fitted by reward.strength, and what a step's draw gave is taken from its reward.

Every step is judged by what the whole run tells. Where the pool is not at hand, or the run's table says nothing of
references, what the run itself has logged as it went on is shown instead, with a note.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from grpo.report.source import Source
from reward.base import Reference
from reward.pool import TIERS, Pool, at_hand
from reward.settings import PoolSettings
from reward.strength import Strengths

Values = list[float | None]


@dataclass(frozen=True)
class Draws:
    """A value for each step of the run; None where the file has no such thing.

    difficulty: mean strength of the drawn references above that of the pool, in logits. effect: what the draw added to
    the step's mean judge score, 0..1. adjusted: reward - weight of the judge x effect.
    """

    difficulty: Values | None
    effect: Values | None
    adjusted: Values | None
    note: str = ""


def draws(source: Source) -> Draws:
    """What the draws of a run's references did."""
    drawn = [str(row.get("references") or "").split() for row in source.rows]
    weight = source.setting("reward", "weights", "judge")
    if not source.samples or not any(drawn) or weight is None:
        return _logged(source, "")
    pool = _pool(source)
    if pool is None or not {name for names in drawn for name in names} <= {one.name for one in pool.references}:
        return _logged(source, "the run's pool is not at hand: ")
    strengths = Strengths(pool)
    for sample in source.samples:
        strengths.add(sample.step, [sample.won])
    fit = strengths.fit()
    if not fit.steps:
        return Draws([None] * len(drawn), [None] * len(drawn), source.column("reward"))
    difficulty: Values = [fit.difficulty(names) if names else None for names in drawn]
    effect: Values = [
        fit.effect(names, step) if names else None for names, step in zip(drawn, source.steps, strict=True)
    ]
    adjusted: Values = [
        None if row.get("reward") is None else row["reward"] - float(weight) * (value or 0.0)
        for row, value in zip(source.rows, effect, strict=True)
    ]
    return Draws(difficulty, effect, adjusted)


def _logged(source: Source, why: str) -> Draws:
    """What the run knew of each step's draw when it was made."""
    difficulty, effect = source.column("draw/difficulty"), source.column("draw/effect")
    note = f"{why}the luck of the draw is shown as the run logged it at each step"
    there = effect is not None and any(value is not None for value in effect)
    return Draws(difficulty, effect, source.column("reward_adjusted"), note if there else "")


def _pool(source: Source) -> Pool | None:
    """Names and tiers of the run's pool, without its pictures; None where it is not on this machine."""
    origin, revision = source.setting("pool", "source") or "embedded", source.setting("pool", "revision") or ""
    folder = at_hand(PoolSettings(source=origin, revision=revision))
    if folder is None:
        return None
    try:
        lines = (folder / "metadata.jsonl").read_text(encoding="utf-8").split("\n")
        entries = [json.loads(line) for line in lines if line.strip()]
        references = [
            Reference(Path(entry.get("file_name") or entry["source_file"]).stem, entry["tier"], b"")
            for entry in entries
            if entry["tier"] in TIERS
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Pool(tuple(sorted(references, key=lambda one: (one.tier, one.name))), str(folder))
