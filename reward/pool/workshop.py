"""The workshop: a folder in which a pool comes into being, and every other folder whose paintings can be rated.

    WORKSHOP/
      calls.jsonl       a line a finished call: its key, the reply, its tokens
      candidates.jsonl  a line a candidate: who painted what, in which round, after which feedback, and what came of it
      images/NAME.png   sources/NAME.js
      ratings.jsonl     a line a rating, an undo or a pair

Each line is on the disk (fsync) before anybody is told of it. A line that a crash cut short is dropped at the next
start: nobody was told of it. One process at a time adds lines to a file.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from render.disk import lock_at_once
from render.errors import UserError

CALLS, CANDIDATES, RATINGS, METADATA = "calls.jsonl", "candidates.jsonl", "ratings.jsonl", "metadata.jsonl"
IMAGES, SOURCES = "images", "sources"
PICTURES = (".png", ".jpg", ".jpeg", ".webp")


@dataclass(frozen=True)
class Item:
    """One painting of a folder. name: unique there. source: the sketch's file, if there is one. meta: what is known."""

    name: str
    image: Path
    source: Path | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file, [] where it is absent; a last line that a crash cut short is left out.

    Raises UserError for a whole line that is no JSON object.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    found = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}:{number}: not a line of JSON; mend it or take it out") from error
        if not isinstance(record, dict):
            raise UserError(f"{path}:{number}: a JSON object is needed, not {type(record).__name__}")
        found.append(record)
    return found


class Log:
    """A JSON-lines file that only grows. records: what it held when it was opened. Safe for several threads.

    Raises UserError where another process has it open, or where the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from error
        if not lock_at_once(self.handle):
            self.close()
            raise UserError(f"{path} is being written by another process; end that one first")
        self.records = read_lines(path)
        self.end = path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self.handle, self.end)  # a line that a crash cut short
        _sync_folder(path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Returns when the line is on the disk. Raises OSError; the file is then what it was before."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self.lock:
            try:
                written = 0
                while written < len(line):
                    written += os.write(self.handle, line[written:])
                os.fsync(self.handle)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self.handle, self.end)
                raise
            self.end += len(line)

    def close(self) -> None:
        with self.lock:
            os.close(self.handle)
            self.handle = -1  # a thread that comes too late must not write into another file


def _sync_folder(folder: Path) -> None:
    """So that a file that was made a moment ago is still there after the power fails."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def items(folder: Path) -> list[Item]:
    """The paintings of a workshop, of a pool, of a run's folder, or of any folder with pictures, in their order.

    Raises UserError where there are none.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    if (folder / CANDIDATES).is_file():
        found = _of_workshop(folder)
    elif (folder / METADATA).is_file():
        found = _of_pool(folder)
    else:
        found = _of_pictures(folder)
    if not found:
        raise UserError(f"{folder}: no paintings there ({', '.join(PICTURES)})")
    double = next((name for name, count in tally(item.name for item in found).items() if count > 1), None)
    if double is not None:
        raise UserError(f"{folder}: two paintings have the name {double}; rename one")
    return found


def _of_workshop(folder: Path) -> list[Item]:
    """Candidates that were painted. Of two lines with one name the later counts."""
    records = {record["name"]: record for record in read_lines(folder / CANDIDATES) if "name" in record}
    painted = [record for record in records.values() if record.get("outcome") == "painted"]
    return [
        Item(
            record["name"],
            folder / IMAGES / f"{record['name']}.png",
            source if (source := folder / SOURCES / f"{record['name']}.js").is_file() else None,
            record,
        )
        for record in painted
    ]


def _of_pool(folder: Path) -> list[Item]:
    found = []
    for record in read_lines(folder / METADATA):
        image, source = (_member(folder, record.get(key)) for key in ("file_name", "source_file"))
        if image is not None and image.suffix.lower() in PICTURES:
            found.append(Item(image.stem, image, source, record))
    return found


def _member(folder: Path, value: Any) -> Path | None:
    """The file that a metadata line names, if it is one inside the folder."""
    if not isinstance(value, str) or os.path.isabs(value) or ".." in Path(value).parts:
        return None
    path = folder / value
    return path if path.is_file() else None


def _of_pictures(folder: Path) -> list[Item]:
    place = next((folder / name for name in ("paintings", IMAGES) if (folder / name).is_dir()), folder)
    pictures = sorted(path for path in place.iterdir() if path.suffix.lower() in PICTURES)
    found = []
    for path in pictures:
        candidates = [
            path.with_suffix(".js"),
            *(place.parent / name / f"{path.stem}.js" for name in ("sketches", SOURCES)),
        ]
        source = next((candidate for candidate in candidates if candidate.is_file()), None)
        step = path.stem.split("_")[1:2] if path.stem.startswith("step_") else []
        meta = {"refinement_round": int(step[0])} if step and step[0].isdigit() else {}
        found.append(Item(path.stem, path, source, meta))
    return found


def tally(values: Iterable[Any]) -> dict[str, int]:
    """How often each value comes, the most frequent first."""
    counts: dict[str, int] = {}
    for value in values:
        counts[str(value)] = counts.get(str(value), 0) + 1
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
