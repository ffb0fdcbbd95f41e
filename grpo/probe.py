"""Samples of a policy with fixed seeds, painted, scored and summed up: what `python -m grpo.paint` shows, and what a
run with [probe] keeps from before its first and after its last step.

Rollout i of any policy is drawn from the same prompt with the same seed and stands in the same place of its sheet. The
seeds are those of step 0, which no training step uses, and each training step seeds itself: a run with a probe is the
same as one without. Diversity is counted (distinct sketches) and measured:

    distance = mean over all pairs of paintings of the mean CIE76 colour difference of their pixels at 64 x 64

Left out: any other statistic of diversity; advantages.

    FOLDER/sketches/ paintings/ sheets/step_0000.png rollouts.jsonl metrics.csv metrics.jsonl   as in a run folder
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from grpo.config import Config
from grpo.folder import read_rows, write_error
from grpo.journal import Journal
from grpo.metrics import TERMS, of_rollouts
from grpo.policy import Policy
from grpo.rollout import Collector, Painter, Rollout
from grpo.sheet import side_by_side
from grpo.stages import Stages
from render.disk import write_whole
from render.pixels import decode
from reward.control import Control
from reward.draw import half_and_half
from reward.features import colour_distance, small_lab
from reward.gate import Gate
from reward.mix import Mix
from reward.pool import Pool

STEP = 0
COLUMNS = [
    "policy",
    "samples",
    "valid",
    "rejections",
    "reward",
    "reward_std",
    "reward_best",
    *(f"rewards/{term}/{part}" for term in TERMS for part in ("mean", "std")),
    "rollouts/scored",
    "rollouts/rejected",
    "rollouts/unscored",
    "rollouts/distinct",
    "distance",
    "coverage",
    "shapes",
    "fills",
    "completions/mean_length",
    "completions/min_length",
    "completions/max_length",
    "completions/clipped_ratio",
    "references",
]
# Columns that people are shown: name, format.
SHOWN = {
    "valid": ("valid", "d"),
    "rollouts/rejected": ("rejected", "d"),
    "rollouts/unscored": ("not scored", "d"),
    "reward": ("reward", ".3f"),
    "reward_best": ("best reward", ".3f"),
    **{f"rewards/{term}/mean": (term, ".3f") for term in TERMS if term != "gate"},
    "shapes": ("filled shapes", ".1f"),
    "fills": ("brush.fill( in a sketch", ".1f"),
    "completions/mean_length": ("tokens", ".0f"),
    "rollouts/distinct": ("distinct sketches", "d"),
    "distance": ("distance between paintings", ".1f"),
}


class Sampler:
    """Paints `samples` sketches for each subject of the config, always with the same seeds and references."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        painter: Painter | None,
        gate: Gate,
        mix: Mix | Control,
        pool: Pool,
        samples: int,
    ) -> None:
        rows = config.sample.rows_at_once or config.rollouts_per_step
        self.config = replace(
            config,
            sample=replace(
                config.sample,
                group_size=samples,
                prompts_per_step=len(config.subject.names),
                rows_at_once=rows,
            ),
            subject=replace(config.subject, order="in_turn"),
        )
        self.policy, self.painter, self.gate, self.mix = policy, painter, gate, mix
        wanted = config.pool.references
        self.references = half_and_half(pool, wanted, config.run.seed, STEP) if pool.references else ()

    @property
    def total(self) -> int:
        return self.config.rollouts_per_step

    def paint(self, name: str, folder: Path, on_done: Callable[[int, int], None]) -> dict[str, Any]:
        """Fill `folder` with the samples of the policy as it is now; the row of the table. on_done(done, of).

        Raises what the farm, the scorers and the disk raise.
        """
        journal, done = Journal(folder, COLUMNS), count(1)

        def scored(rollout: Rollout) -> None:
            journal.rollout(rollout)
            on_done(next(done), self.total)

        collector = Collector(self.config, self.policy, self.painter, self.gate, self.mix, scored)
        rollouts = collector.collect(STEP, 1, self.references).rollouts
        found = {
            **of_rollouts(rollouts),
            "policy": name,
            "samples": len(rollouts),
            "valid": sum(is_valid(rollout) for rollout in rollouts),
            "rejections": reasons(rollouts),
            "distance": distance([one.painting.png for one in rollouts if one.painting and one.painting.png]),
            "references": " ".join(reference.name for reference in self.references),
        }
        if found["valid"] and not found["rollouts/scored"]:
            # A scorer is missing: what is left are the zeros of rejected sketches, and they are no mean.
            found |= dict.fromkeys(("reward", "reward_std", "reward_best"))
        row = {column: found[column] for column in COLUMNS}
        journal.step(rollouts, row)
        return row


class Probe:
    """The samples that a run keeps in FOLDER/step_NNNN, from before its first step and after its last one.

    samples = 0: does nothing. What lies there whole is not painted again, so that a resumed run keeps its beginning.
    """

    def __init__(self, folder: Path, sampler: Sampler, console: Console) -> None:
        self.folder = folder
        self.sampler = sampler
        self.console = console

    def before(self, step: int) -> None:
        """step: that the run goes on from; later than 0 there is nothing to be had any more."""
        if self.sampler.total and step == 0:
            self._take(0)

    def after(self, step: int) -> str:
        """The last samples beside the first; the line that says so, empty where there is nothing to compare."""
        if not self.sampler.total or step == 0 or not read_rows(self._place(0) / "metrics.jsonl"):
            return ""
        rows = [self._take(0), self._take(step)]
        picture = self.folder / "before_after.png"
        compare([self._place(0), self._place(step)], rows, picture)
        return f"probe of {rows[0]['samples']} samples, before -> after: {change(rows)}; {picture}"

    def _place(self, step: int) -> Path:
        return self.folder / f"step_{step:04d}"

    def _take(self, step: int) -> dict[str, Any]:
        place, name = self._place(step), f"step {step}"
        rows = read_rows(place / "metrics.jsonl")
        if rows:
            return rows[-1]
        shutil.rmtree(place, ignore_errors=True)
        with Stages(self.console) as stages:
            return self.sampler.paint(name, place, partial(stages.show, f"probe at {name}"))


def compare(folders: Sequence[Path], rows: Sequence[dict[str, Any]], picture: Path) -> None:
    """Write the sheets of several policies side by side. Raises UserError when the disk refuses."""
    sheets = [folder / "sheets" / f"step_{STEP:04d}.png" for folder in folders]
    sides = [(_title(row), sheet.read_bytes()) for row, sheet in zip(rows, sheets, strict=True)]
    try:
        write_whole(picture, side_by_side(sides))
    except OSError as error:
        raise write_error(picture, error) from error


def _title(row: dict[str, Any]) -> str:
    reward = "" if row["reward"] is None else f"   reward {row['reward']:.3f}"
    return f"{row['policy']}{reward}"


def is_valid(rollout: Rollout) -> bool:
    """The sketch kept the rules and, where sketches are painted, there is a painting."""
    return rollout.painting.painted if rollout.painting is not None else rollout.outcome == "scored"


def reasons(rollouts: Sequence[Rollout]) -> str:
    """Why rollouts are not scored, the most frequent reason first."""
    found = [
        f"{one.outcome} {one.verdict.reason}" for one in rollouts if one.verdict and one.verdict.outcome != "scored"
    ]
    return ", ".join(f"{count}x {reason}" for reason, count in Counter(found).most_common())


def distance(paintings: Sequence[bytes]) -> float | None:
    """How far the paintings (PNG) lie from one another (reward.features.colour_distance)."""
    return colour_distance([small_lab(decode(png)) for png in paintings])


def table(rows: Sequence[dict[str, Any]], names: dict[str, str]) -> Table:
    """A column a policy. names: column of the metrics -> the name that people see, where it differs."""
    shown = Table(title="Samples", title_justify="left")
    shown.add_column("")
    for row in rows:
        shown.add_column(f"{row['policy']}", justify="right", overflow="fold")
    shown.add_row("samples", *(str(row["samples"]) for row in rows))
    for column, (name, form) in SHOWN.items():
        if any(row[column] is not None for row in rows):
            shown.add_row(names.get(column, name), *(number(row[column], form) for row in rows))
    shown.add_row("why not", *(row["rejections"] or "-" for row in rows))
    return shown


def change(rows: Sequence[dict[str, Any]]) -> str:
    """The same for one line of text, the policies in order."""
    columns = ("reward", "valid", "rollouts/distinct", "distance", "completions/mean_length")
    return ", ".join(
        f"{SHOWN[column][0]} {' -> '.join(number(row[column], SHOWN[column][1]) for row in rows)}" for column in columns
    )


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
