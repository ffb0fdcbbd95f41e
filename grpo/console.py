"""What a person sees while a run goes on, and at its end.

In a terminal a live table of the last steps with the step in flight under it; elsewhere one plain line a step. The very
last line of a run is for machines: `steps=.. reward_first=.. reward_last=.. gain=.. ...`.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from grpo.metrics import JUDGE_COUNTS
from grpo.rollout import Rollout
from grpo.trainer import DEAD_STEPS

FLAT_LOSS = (
    "The loss is near 0 because each update is on-policy: the advantages of a group sum to 0. It says nothing about "
    "learning; read reward, and take a grad norm of 0 as the alarm."
)
SHOWN = 14
LOW_REWARD = 0.3


class StepConsole:
    """Shows the steps of one run. Its methods may be called from any thread."""

    def __init__(self, console: Console, steps: int, rollouts: int, terms: dict[str, str]) -> None:
        self.console = console
        self.steps = steps
        self.rollouts = rollouts
        self.terms = terms  # column of the metrics -> the name that people see
        self.rows: deque[dict[str, Any]] = deque(maxlen=SHOWN)
        self.durations: deque[float] = deque(maxlen=20)
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.dead = 0
        self.step = 0
        self.sheet: Path | None = None
        self.started = time.monotonic()
        self._lock = threading.Lock()
        self._live: Live | None = None

    def __enter__(self) -> StepConsole:
        self.console.print(Text(FLAT_LOSS, style="dim"))
        if self.console.is_terminal:
            self._live = Live(get_renderable=self._render, console=self.console, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, kind: str) -> None:
        """sampled, painted or scored, of the step in flight."""
        with self._lock:
            self.counts[kind] += 1

    def rollout(self, rollout: Rollout) -> None:
        """Count the reason of a rollout that was not scored."""
        if rollout.outcome != "scored" and rollout.verdict is not None:
            with self._lock:
                self.reasons[f"{rollout.outcome}: {rollout.verdict.reason}"] += 1

    def finished(self, metrics: dict[str, Any], sheet: Path) -> None:
        """A step is whole."""
        with self._lock:
            reasons, self.reasons = self.reasons, Counter()
            self.counts = Counter()
            self.rows.append({**metrics, "reasons": reasons})
            self.durations.append(metrics["step_time"])
            self.step, self.sheet = metrics["step"], sheet
            self.dead = 0 if metrics["updates"] else self.dead + 1
        if self._live is None:
            self.console.print(plain_line(metrics, reasons, self.steps, self._eta(), self.terms), soft_wrap=True)
        if self.dead and self.dead % DEAD_STEPS == 0:
            why = (
                "fewer than two scored rollouts" if metrics["frac_unscored_groups"] else "all rewards of a group equal"
            )
            self.console.print(
                f"[bold yellow]warning[/] {self.dead} steps in a row gave no gradient ({why}): nothing is being learnt"
            )

    def _eta(self) -> float:
        return statistics.fmean(self.durations) * (self.steps - self.step) if self.durations else 0.0

    def _render(self) -> RenderableType:
        with self._lock:
            parts: list[RenderableType] = [self._table(), self._progress()]
            if self.sheet is not None:
                parts.append(Text(f"latest contact sheet: {self.sheet}", style="dim"))
            return Group(*parts)

    def _table(self) -> Table:
        table = Table(expand=False, box=None, pad_edge=False, header_style="bold")
        table.add_column("step", justify="right")
        table.add_column("reward", justify="right")
        for name in self.terms.values():
            table.add_column(name, justify="right", overflow="fold", max_width=13)
        for name in ("scored", "tokens", "entropy", "grad", "sample", "paint", "score", "train"):
            table.add_column(name, justify="right")
        table.add_column("rejected or unscored", overflow="fold")
        for row in self.rows:
            table.add_row(
                str(row["step"]),
                _number(row["reward"]),
                *(_number(row[column]) for column in self.terms),
                f"{row['rollouts/scored']}/{self.rollouts}",
                _number(row["completions/mean_length"], 0),
                _number(row["entropy"], 2),
                _number(row["grad_norm"], 4),
                *(f"{row[f'time/{part}']:.1f}s" for part in ("sample", "paint_waited", "score", "train")),
                ", ".join(f"{count}x {reason}" for reason, count in row["reasons"].items()),
            )
        return table

    def _progress(self) -> Progress:
        """The step in flight, and the run."""
        progress = Progress(TextColumn("{task.description}"), BarColumn(30), TextColumn("{task.fields[text]}"))
        counts = self.counts
        text = f"sampled {counts['sampled']}  painted {counts['painted']}  scored {counts['scored']} of {self.rollouts}"
        left = time.strftime("%H:%M:%S", time.gmtime(self._eta()))
        progress.add_task(
            f"step {self.step + 1}/{self.steps}", total=self.rollouts, completed=counts["scored"], text=text
        )
        progress.add_task("run", total=self.steps, completed=self.step, text=f"about {left} left")
        return progress


def plain_line(metrics: dict[str, Any], reasons: Counter[str], steps: int, eta: float, terms: dict[str, str]) -> str:
    """One step as one line of text."""
    total = metrics["step_time"]
    waited = metrics["time/paint_waited"]
    parts = [
        f"step {metrics['step']}/{steps}",
        f"reward {_number(metrics['reward'])}",
        "(" + ", ".join(f"{name} {_number(metrics[column])}" for column, name in terms.items()) + ")",
        f"scored {metrics['rollouts/scored']} rejected {metrics['rollouts/rejected']} "
        f"unscored {metrics['rollouts/unscored']}",
        f"tokens {_number(metrics['completions/mean_length'], 0)}",
        f"entropy {_number(metrics['entropy'], 2)}",
        f"loss {_number(metrics['loss'], 4)}",
        f"grad {_number(metrics['grad_norm'], 4)}",
        f"{total:.1f}s: sample {metrics['time/sample']:.1f} paint waited {waited:.1f} ({waited / total:.0%}) "
        f"score {metrics['time/score']:.1f} train {metrics['time/train']:.1f}",
        f"left {time.strftime('%H:%M:%S', time.gmtime(eta))}",
    ]
    if reasons:
        parts.append("; ".join(f"{count}x {reason}" for reason, count in reasons.items()))
    return "  ".join(parts)


def thirds(values: Sequence[float]) -> list[float]:
    """Means of the first, middle and last third (sizes differ by one at most; fewer than three values: as many)."""
    count = min(3, len(values))
    cuts = [round(index * len(values) / count) for index in range(count + 1)] if count else []
    return [statistics.fmean(values[start:end]) for start, end in itertools.pairwise(cuts)]


def summary(rows: list[dict[str, Any]], rewards: list[list[float]], folder: Path, seconds: float) -> tuple[Table, str]:
    """The table for people and the line for machines.

    rows: the metrics of every step; rewards: the scored rewards of every step, so that shares are of rollouts.
    """
    means = [row["reward"] for row in rows if row["reward"] is not None]
    parts = thirds(means)
    table = Table(title="Reward over the run", title_justify="left")
    table.add_column("")
    names = ("first third", "middle third", "last third")
    for name in names[: len(parts)]:
        table.add_column(name, justify="right")
    table.add_row("mean reward", *(f"{value:.3f}" for value in parts))
    low = thirds([statistics.fmean(float(reward < LOW_REWARD) for reward in step) for step in rewards if step])
    table.add_row(f"share below {LOW_REWARD}", *(f"{value:.0%}" for value in low))
    for label, key in (
        ("best of each step", "reward_best"),
        ("median of each step", "reward_median"),
        ("mean without the luck of the draw", "reward_adjusted"),
        ("brush.fill( in a sketch", "fills"),
    ):
        values = [row[key] for row in rows if row.get(key) is not None]
        if values:
            table.add_row(label, *(f"{value:.3f}" for value in thirds(values)))
    counts = {name: sum(row[f"rollouts/{name}"] for row in rows) for name in ("scored", "rejected", "unscored")}
    first, last = (parts[0], parts[-1]) if parts else (float("nan"), float("nan"))
    line = (
        f"steps={len(rows)} reward_first={first:.4f} reward_last={last:.4f} gain={last - first:.4f} "
        f"scored={counts['scored']} rejected={counts['rejected']} unscored={counts['unscored']} "
        f"seconds={seconds:.0f} run={folder}"
    )
    return table, line


def judge_table(rows: list[dict[str, Any]]) -> Table | None:
    """What happened at the judge over the run, or None where it was never called (a stand-in)."""
    totals = {part: sum(row.get(f"judge/{part}") or 0 for row in rows) for part in JUDGE_COUNTS}
    if not totals["calls"] + totals["cached"] + totals["missing"]:
        return None
    faults: Counter[str] = Counter()
    for row in rows:
        for entry in (row.get("judge/faults") or "").split():
            kind, _, count = entry.rpartition(":")
            faults[kind] += int(count)
    table = Table(title="The judge over the run", title_justify="left", show_header=False)
    table.add_row("calls", f"{totals['calls']:.0f}, of which {totals['retries']:.0f} again after a fault")
    table.add_row("answers", f"{totals['answers']:.0f} paid, {totals['cached']:.0f} from the cache")
    table.add_row("comparisons that stayed missing", f"{totals['missing']:.0f}")
    table.add_row("faults", ", ".join(f"{count} {kind}" for kind, count in faults.most_common()) or "none")
    table.add_row("outages", f"{totals['outages']:.0f}, waited {totals['waited_s']:.0f} s")
    price = f", {totals['cost']:.4f} in money" if totals["cost"] else ""
    table.add_row("tokens", f"{totals['tokens_in']:,.0f} in, {totals['tokens_out']:,.0f} out{price}")
    return table


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
