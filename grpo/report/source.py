"""What a report is made from: a run folder, or a metrics.csv that some other trainer wrote.

    source = load(Path("runs/laptop"))          rows a step, samples a rollout
    source = load(Path("published.csv"))        rows alone

Columns are TRL's (`reward`, `rewards/NAME/mean`, `completions/mean_length`, ...). Other spellings are brought to them:
the prefix `train/`, wandb's `RUN - train/reward`, `rewards/NAME` without its `/mean`, `completion_length`; a step is
`step`, `global_step` or `_step`, and where there is none the rows are counted. Rows of the same step are laid over one
another.
A cell that holds no number is None. What a file lacks is lacking in `columns`, and never becomes 0.

A run that is going on is read as far as its last whole step.
"""

from __future__ import annotations

import csv
import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpo.folder import read_rows
from render.errors import UserError

Row = dict[str, Any]

STEP_NAMES = ("step", "global_step", "_step")
PREFIXES = ("train/", "train_")
ALIASES = {"completion_length": "completions/mean_length", "completions/length": "completions/mean_length"}
TEXT = ("references", "judge/faults")  # columns that are words


@dataclass(frozen=True)
class Sample:
    """One rollout, without its text. cause: why it could not be scored, or which rule it broke, in full.

    completion: stands for the tokens; equal where they are. coverage and shapes are None where nothing was painted.
    won: what it won (0..1) against each reference of the step.
    """

    step: int
    index: int
    group: int
    reward: float | None
    outcome: str
    reason: str
    cause: str
    tokens: int
    completion: int
    coverage: float | None
    shapes: float | None
    won: Mapping[str, float]

    @property
    def name(self) -> str:
        return f"step_{self.step:04d}_{self.index:02d}"


@dataclass(frozen=True)
class Source:
    """rows: one a step, in order, each with a whole `step`. samples: None where the file says nothing of rollouts.

    folder: the run folder, None for a table alone. config: tables of the run's config.toml, empty where there is none.
    notes: what a reader should know, in lines.
    """

    name: str
    path: Path
    folder: Path | None
    rows: tuple[Row, ...]
    columns: frozenset[str]
    samples: tuple[Sample, ...] | None
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> list[int]:
        return [row["step"] for row in self.rows]

    def column(self, name: str) -> list[float | None] | None:
        """A value for each step, or None where the file has no such column."""
        return [row.get(name) for row in self.rows] if name in self.columns else None

    def setting(self, *keys: str) -> Any:
        """A value of the run's config, or None."""
        value: Any = self.config
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    @property
    def stand_ins(self) -> frozenset[str]:
        """Terms whose scorer is a small stand-in."""
        return frozenset(
            term for term in ("preference", "judge") if self.setting("reward", term) == "stand_in" and self.paints
        )

    @property
    def paints(self) -> bool:
        return self.setting("reward", "task") != "fills"


def load(path: Path) -> Source:
    """Read a run folder, a CSV or a metrics.jsonl. Raises UserError in one line."""
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise UserError(f"{path}: there is no such run folder or file")
    if path.suffix == ".jsonl":
        rows, columns, notes = _rows(path, read_rows(path))
    else:
        rows, columns, notes = _rows(path, _csv_rows(path))
    name = path.parent.name if path.stem == "metrics" and path.parent.name else path.stem
    return Source(name, path, None, rows, columns, None, {}, notes)


def _folder(folder: Path) -> Source:
    table = folder / "metrics.jsonl"
    if not table.exists():
        table = folder / "metrics.csv"
    if not table.exists():
        known = (folder / "config.toml").exists()
        raise UserError(f"{folder}: " + ("no step is finished yet" if known else "not a run folder (no metrics.jsonl)"))
    samples = None
    if (folder / "rollouts.jsonl").exists():
        samples = tuple(_samples(folder / "rollouts.jsonl"))
    raw = read_rows(table) if table.suffix == ".jsonl" else _csv_rows(table)
    # The table of grpo.paint does not name its step; its rollouts do.
    rows, columns, notes = _rows(table, raw, sorted({sample.step for sample in samples or ()}))
    if samples is not None:
        whole = {row["step"] for row in rows}
        samples = tuple(sample for sample in samples if sample.step in whole)
    # A run's probe lies two folders below its config.
    place = folder.resolve().parents[1] if folder.resolve().parent.name == "probe" else folder
    config: dict[str, Any] = {}
    if (place / "config.toml").exists():
        try:
            config = tomllib.loads((place / "config.toml").read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            notes = (*notes, f"config.toml cannot be read ({error})")
    return Source(folder.resolve().name, folder, folder, rows, columns, samples, config, notes)


def _samples(path: Path) -> Iterator[Sample]:
    """Line by line: a long run's rollouts are much larger than what is kept of them. A line cut short ends it."""
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                return
            yield _sample(record)


def _sample(record: Mapping[str, Any]) -> Sample:
    painting = record.get("painting") or {}
    painted = painting.get("outcome") == "painted"
    reason = record.get("reason") or ""
    return Sample(
        step=record["step"],
        index=record["index"],
        group=record.get("group", 0),
        reward=_number(record.get("reward")),
        outcome=record["outcome"],
        reason=reason,
        cause=": ".join(part for part in (reason, record.get("detail") or "") if part),
        tokens=record["tokens"],
        completion=hash(tuple(record.get("completion_ids", ()))),
        coverage=_number(painting.get("coverage")) if painted else None,
        shapes=_number(painting.get("shapes")) if painted else None,
        won=(record.get("terms_info") or {}).get("judge", {}).get("won", {}),
    )


# --- tables -------------------------------------------------------------------------------------------------------


def _csv_rows(path: Path) -> list[Row]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return [{key: value for key, value in row.items() if key} for row in csv.DictReader(stream)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as CSV: {error}") from None


def _rows(
    path: Path, raw: Sequence[Row], steps: Sequence[int] = ()
) -> tuple[tuple[Row, ...], frozenset[str], tuple[str, ...]]:
    """Rows with this project's names, one a step; the columns that the file has; notes.

    steps: of the rows, where there is one for each and the file does not name them.
    """
    if not raw:
        raise UserError(f"{path}: no step is finished yet" if path.suffix == ".jsonl" else f"{path}: holds no row")
    names = list(dict.fromkeys(key for row in raw for key in row))
    known = _names(path, names)
    columns = frozenset(known.values())
    if "reward" not in columns:
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise UserError(f"{path}: no column reward (nor train/reward); its columns are {shown}")
    by_step: dict[int, Row] = {}
    counted, rows = not any(name in columns for name in STEP_NAMES), 0
    numbers = steps if len(steps) == len(raw) else range(1, len(raw) + 1)
    for place, row in enumerate(raw):
        values = {known[key]: _value(known[key], cell) for key, cell in row.items() if key in known}
        step = numbers[place] if counted else _step(values)
        if step is None:
            continue
        rows += 1
        by_step.setdefault(step, {"step": step}).update(
            {key: value for key, value in values.items() if value is not None and key not in STEP_NAMES}
        )
    if not by_step:
        raise UserError(f"{path}: no row names its step")
    notes = []
    if counted and numbers is not steps:
        notes.append("there is no column for the step: the rows are counted from 1")
    if rows > len(by_step):
        notes.append(f"{rows} rows for {len(by_step)} steps: rows of the same step are laid over one another")
    if rows < len(raw):
        notes.append(f"{len(raw) - rows} rows without a step are left out")
    return tuple(by_step[step] for step in sorted(by_step)), columns, tuple(notes)


def _step(values: Row) -> int | None:
    step = next((values[name] for name in STEP_NAMES if values.get(name) is not None), None)
    return None if step is None else int(step)


def _names(path: Path, names: Iterable[str]) -> dict[str, str]:
    """Column of the file -> its name here. Of two that mean the same the plain one counts."""
    found: dict[str, str] = {}
    runs = {run for run, separator, _ in (name.rpartition(" - ") for name in names) if separator}
    if len(runs) > 1:
        raise UserError(f"{path}: holds several runs ({', '.join(sorted(runs)[:4])}): one file for each, please")
    for name in names:
        plain = name.rpartition(" - ")[2]
        if plain.endswith(("__MIN", "__MAX")):
            continue
        for prefix in PREFIXES:
            plain = plain.removeprefix(prefix)
        plain = plain.lower() if plain.lower() in STEP_NAMES else ALIASES.get(plain, plain)
        if plain.startswith("rewards/") and plain.count("/") == 1:
            plain += "/mean"
        if plain not in found.values() or name == plain:
            found = {old: new for old, new in found.items() if new != plain}
            found[name] = plain
    return found


def _value(name: str, cell: Any) -> Any:
    if name in TEXT:
        return cell or None
    return _number(cell)


def _number(value: Any) -> float | None:
    """A finite number, or None. A metric that was no number is text in the journal (`nan`), and is none here either."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
