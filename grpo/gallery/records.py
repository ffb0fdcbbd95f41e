"""A run's rollouts, read on from where the last call stopped, and packed for the page.

A step's rollouts count as whole once the table has a row for the step; later ones, and those of the partial file, are
in flight. A resumed run rewrites its rollouts: then they are read again from the start.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo.folder import read_rows

MARK = 256  # bytes before the place that was reached, by which a file is known again
EXCERPT = 700  # characters of a sketch that stand in the place of a painting
HEAVY = ("prompt_ids", "completion_ids")  # left out: they are in the run's rollouts.jsonl
Record = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """How far a file was read: bytes, the file's number on its disk, checksum of the last bytes that were read."""

    offset: int = 0
    number: int = 0
    mark: int = 0


def still_valid(path: Path, place: Place) -> bool:
    """Whether the file is the one that was read so far."""
    if place.offset == 0:
        return True
    try:
        return path.stat().st_ino == place.number and _mark(path, place.offset) == place.mark
    except FileNotFoundError:
        return False


def place_at(path: Path, offset: int) -> Place:
    return Place(offset, path.stat().st_ino, _mark(path, offset)) if offset else Place()


def _mark(path: Path, offset: int) -> int:
    with path.open("rb") as stream:
        stream.seek(max(0, offset - MARK))
        return zlib.crc32(stream.read(min(MARK, offset)))


def read_on(path: Path, offset: int) -> Iterator[tuple[Record, int]]:
    """Each rollout after `offset` and where it ends; stops at a line that is cut short or damaged."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        stream.seek(offset)
        for line in stream:
            offset += len(line)
            try:
                record = json.loads(line)
            except ValueError:
                return
            if not line.endswith(b"\n") or not isinstance(record, dict) or "step" not in record:
                return
            yield record, offset


def whole_steps(path: Path, offset: int, last: int) -> Iterator[tuple[int, list[Record], int]]:
    """(step, its rollouts, where they end) for each whole step after `offset`."""
    records: list[Record] = []
    end = offset
    for record, reached in read_on(path, offset):
        if records and record["step"] != records[0]["step"]:
            yield records[0]["step"], records, end
            records = []
        if record["step"] > last:
            return
        records.append(record)
        end = reached
    if records:
        yield records[0]["step"], records, end


def in_flight(folder: Path, offset: int, last: int) -> list[Record]:
    """Rollouts of steps that are not whole, in order."""
    found = [record for record, _ in read_on(folder / "rollouts.jsonl", offset)]
    found += [record for record in read_rows(folder / "rollouts.partial.jsonl") if isinstance(record, dict)]
    newest = {(record["step"], record["index"]): record for record in found if record.get("step", 0) > last}
    return [newest[key] for key in sorted(newest)]


def name_of(record: Record) -> str:
    return f"step_{record['step']:04d}_{record['index']:02d}"


def packed(step: int, records: list[Record], colours: dict[str, str]) -> Record:
    """A step for the wall. colours: name -> mean colour of those that have a painting.

    A row: index, group, outcome's first letter, reward, advantage, mean colour or null, coverage, tokens, shapes,
    reason, value of each term; then the beginning of the sketch where there is no painting.
    """
    terms = list(dict.fromkeys(name for record in records for name in record.get("terms") or {}))
    subjects = {str(record.get("group", 0)): record.get("subject", "") for record in records}
    rows = []
    for record in sorted(records, key=lambda record: record["index"]):
        painting = record.get("painting") or {}
        colour = colours.get(name_of(record))
        row = [
            record["index"],
            record.get("group", 0),
            str(record.get("outcome", "unscored"))[:1],
            number(record.get("reward")),
            number(record.get("advantage")),
            colour,
            number(painting.get("coverage")),
            record.get("tokens", 0),
            painting.get("shapes", 0),
            str(record.get("reason", "")),
            [number((record.get("terms") or {}).get(term)) for term in terms],
        ]
        if colour is None:
            row.append(str(record.get("text", ""))[:EXCERPT])
        rows.append(row)
    return {"step": step, "terms": terms, "subjects": subjects, "rows": rows}


def detailed(record: Record, sketch: str | None, checksum: int | None) -> Record:
    """A rollout for its own page: all but the token ids. `sketch` stands only where it is not the whole reply."""
    detail = {key: rounded(value) for key, value in record.items() if key not in HEAVY}
    if sketch is not None and sketch != record.get("text"):
        detail["source"] = sketch
    return {**detail, "sketch": sketch is not None, "checksum": checksum}


def references_of(record: Record) -> set[str]:
    """Names of the references that the judge compared this rollout with."""
    judge = (record.get("terms_info") or {}).get("judge") or {}
    return {*(judge.get("won") or {}), *(judge.get("missing") or {})}


def number(value: Any) -> float | int | None:
    """The value where it is a number, to five digits: more is not to be seen."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(f"{value:.5g}") if isinstance(value, float) else value


def rounded(value: Any) -> Any:
    """The same for all numbers inside."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return number(value) if isinstance(value, float) else value


def table(rows: list[Record]) -> Record:
    """The run's table by columns; those that hold nothing but null are left out."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    kept = {key: [rounded(row.get(key)) for row in rows] for key in columns}
    return {key: values for key, values in kept.items() if any(value is not None for value in values)}
