"""The run folder: everything that happens, written as it happens.

    config.toml            the resolved config
    policy.json            what the policy is: class, commits, trained share, adapted layers by name
    metrics.jsonl, .csv    a row a step; TRL's names where the meaning is TRL's
    rollouts.jsonl         a line a rollout: tokens, text, reward and terms, reasons, painting's numbers, timings
    rollouts.partial.jsonl the step in flight: a line as soon as a rollout has its verdict, without advantage yet
    sketches/ paintings/   step_0001_00.js and .png
    sheets/                a contact sheet a step
    gallery/ report/       what grpo.gallery and grpo.report make of it
    publish/               what is going up to the Hub (grpo.publish)
    refresh.lock           held by whoever keeps gallery/ fresh
    curve.png              reward over the steps, as paid and without the luck of the draw
    checkpoints/           see checkpoint.py

Steps are counted from 1 in files and names. A crash loses at most the rollout in flight. On resume the rows of steps
after the checkpoint are dropped, because those steps are sampled again (and come out the same).
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import threading
from pathlib import Path
from typing import Any

from grpo.folder import read_rows, write_error
from grpo.rollout import Rollout
from grpo.sheet import contact_sheet
from render.disk import write_whole


class Journal:
    """Owns the run folder. Safe to call from the scoring thread and the main thread at once.

    Raises UserError in one line when a write fails.
    """

    def __init__(self, folder: Path, columns: list[str]) -> None:
        self.folder = folder
        self.columns = columns
        self._lock = threading.Lock()
        for name in ("sketches", "paintings", "sheets"):
            self._make(folder / name)

    @property
    def partial(self) -> Path:
        return self.folder / "rollouts.partial.jsonl"

    def rollout(self, rollout: Rollout) -> None:
        """A rollout has its verdict: sketch and painting as files, a line in the partial file."""
        with self._lock:
            if rollout.sketch is not None:
                self._write(self.folder / "sketches" / f"{rollout.name}.js", rollout.sketch.encode())
            if rollout.painting is not None and rollout.painting.png is not None:
                self._write(self.folder / "paintings" / f"{rollout.name}.png", rollout.painting.png)
            self._append(self.partial, _line(rollout.record()))

    def step(self, rollouts: list[Rollout], metrics: dict[str, Any]) -> Path:
        """A step is whole: its rollouts with their advantages, its metrics and its contact sheet. Returns the sheet."""
        sheet = self._sheet(rollouts)
        with self._lock:
            self._write(sheet, contact_sheet(rollouts))
            self._append(self.folder / "rollouts.jsonl", "".join(_line(rollout.record()) for rollout in rollouts))
            self._append(self.folder / "metrics.jsonl", _line(metrics))
            table = self.folder / "metrics.csv"
            header = not table.exists() or table.stat().st_size == 0
            self._append(table, self._csv(metrics, header))
            self.discard_partial()
        return sheet

    def discard_partial(self) -> None:
        """Forget the step in flight: it is written whole, or is to be sampled again."""
        self.partial.unlink(missing_ok=True)

    def rewind(self, step: int) -> list[dict[str, Any]]:
        """Drop every row after `step` (0 = all of them) and return the metrics that stay."""
        kept: list[dict[str, Any]] = []
        for name in ("rollouts.jsonl", "metrics.jsonl"):
            path = self.folder / name
            rows = [row for row in read_rows(path) if row["step"] <= step]
            self._replace(path, "".join(_line(row) for row in rows).encode())
            kept = rows
        lines = [self._csv(row, index == 0) for index, row in enumerate(kept)]
        self._replace(self.folder / "metrics.csv", "".join(lines).encode())
        self.discard_partial()
        return kept

    def write(self, name: str, text: str) -> None:
        """A small file of the run folder, whole or as it was."""
        self._replace(self.folder / name, text.encode())

    def picture(self, name: str, png: bytes) -> None:
        """A picture of the run folder, whole or as it was."""
        self._replace(self.folder / name, png)

    def _sheet(self, rollouts: list[Rollout]) -> Path:
        return self.folder / "sheets" / f"step_{rollouts[0].step:04d}.png"

    def _csv(self, row: dict[str, Any], header: bool) -> str:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, self.columns, restval="", extrasaction="raise", lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerow({key: "" if value is None else value for key, value in row.items()})
        return buffer.getvalue()

    def _append(self, path: Path, text: str) -> None:
        """Append whole lines and flush them to the disk; a write that fails half-way is taken back."""
        try:
            with path.open("ab") as stream:
                start = stream.tell()
                try:
                    stream.write(text.encode())
                    stream.flush()
                    os.fsync(stream.fileno())
                except OSError:
                    if path.is_file():
                        os.truncate(path, start)
                    raise
        except OSError as error:
            raise write_error(path, error) from error

    def _write(self, path: Path, content: bytes) -> None:
        try:
            path.write_bytes(content)
        except OSError as error:
            raise write_error(path, error) from error

    def _replace(self, path: Path, content: bytes) -> None:
        try:
            write_whole(path, content)
        except OSError as error:
            raise write_error(path, error) from error

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from error


class Follower(Journal):
    """What a rank beside the first keeps (grpo.ranks): its own rollouts, as they come. The rest is the first's."""

    def step(self, rollouts: list[Rollout], metrics: dict[str, Any]) -> Path:
        return self._sheet(rollouts)

    def discard_partial(self) -> None:
        pass

    def write(self, name: str, text: str) -> None:
        pass

    def picture(self, name: str, png: bytes) -> None:
        pass


def _line(row: dict[str, Any]) -> str:
    return json.dumps(_finite(row), ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """NaN and infinity are not JSON: a metric that is not a number is a fault that must show, so it becomes text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
