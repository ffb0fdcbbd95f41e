"""Builds a gallery folder and keeps it fresh. What lies in it is said in grpo.gallery.

Order of writing: pictures, details, wall, table, then the list of the runs. Each file is replaced whole, so that a page
that is open never reads half of one, and never a name whose file is not there yet.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from grpo.folder import read_rows
from grpo.gallery import records
from grpo.gallery.live import PAGE, Live, live_settings, live_studio
from grpo.gallery.pictures import link, look, write_changed
from grpo.gallery.records import Place, Record
from grpo.gallery.references import find_pool
from grpo.gallery.settings import described, pool_settings, read_config, render_settings, stand_ins, weights
from render.disk import locked, write_whole
from render.errors import UserError

STATE = ".gallery.json"
FORMAT = 1  # of the data files; another one is written anew
STEPS_AT_ONCE = 20  # steps after which what was read is on disk, so that an interrupted build goes on from there
FOLDERS = ("data", "paintings", "thumbs", "references")
FRAME = ("frame_before.js", "frame_after.js")  # parts of the page that go into studio/

Say = Callable[[str], None]
Show = Callable[[str, int, int], None]


def build(
    runs: Sequence[Path],
    out: Path,
    say: Say = lambda line: None,
    *,
    show: Show = lambda name, done, total: None,
    paint_references: bool = False,
) -> Path:
    """Bring the gallery of these runs in folder `out` up to date; the path of its index.html.

    show(name, done, total): progress. paint_references: paint references that are not at hand, which takes a browser.
    Cheap when little is new. Several callers at once wait for one another. Raises UserError where a folder is no run,
    `out` holds something else, or the disk refuses.
    """
    for run in runs:
        if not any((run / name).is_file() for name in ("config.toml", "rollouts.jsonl")):
            raise UserError(f"{run} is not a run folder: it holds neither config.toml nor rollouts.jsonl")
    if out.exists() and not (out / STATE).exists() and any(path.name != STATE + ".lock" for path in out.iterdir()):
        raise UserError(f"{out} holds other files; name a new folder or a gallery")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out / (STATE + ".lock")):
            return _build(runs, out, say, show, paint_references)
    except OSError as error:
        raise UserError(f"{error.filename or out}: {error.strerror or error}") from error


def _build(runs: Sequence[Path], out: Path, say: Say, show: Show, paint: bool) -> Path:
    state = _read_state(out)
    live = live_studio()
    changed = _write_page(out, live)
    names = _names(runs, state)
    for gone in {entry["id"] for entry in state["runs"].values()} - set(names.values()):
        for folder in FOLDERS:
            shutil.rmtree(out / folder / gone, ignore_errors=True)
    state["runs"] = {path: entry for path, entry in state["runs"].items() if path in names}
    described_runs = []
    for run in runs:
        key = str(run.resolve())
        entry = state["runs"].setdefault(key, {"id": names[key], "references": {}})
        builder = RunBuilder(run, out, entry, lambda: _write_state(out, state))
        described_runs.append(builder.update(say, show, paint))
    for one in described_runs:
        one["live"] = one["live"] if live.files else None
    data = {"runs": described_runs, "live": live.why}
    version = zlib.crc32(json.dumps(data).encode())
    changed |= write_changed(out / "data" / "runs.js", _script("runs", "", {**data, "version": version}))
    _write_state(out, state)
    index = out / "index.html"
    if changed:
        say(f"gallery: {index}")
    if live.why:
        say(f"without live repainting: {live.why}")
    return index


class RunBuilder:
    """Reads one run on and writes its part of the gallery. entry: what the gallery's state keeps of it."""

    def __init__(self, run: Path, out: Path, entry: Record, save: Callable[[], None]) -> None:
        self.run, self.entry, self.save = run, entry, save
        self.id: str = entry["id"]
        self.out = out
        self.data = out / "data" / self.id
        self.tables = read_config(run)

    def update(self, say: Say, show: Show, paint: bool) -> Record:
        """Write what is new; the run's entry in data/runs.js."""
        rows = read_rows(self.run / "metrics.jsonl")
        table = [row for row in rows if isinstance(row.get("step"), int)]
        last = max((row.get("step", 0) for row in rows), default=-1)  # samples have a table of one row, without a step
        rollouts = self.run / "rollouts.jsonl"
        place = Place(**self.entry.get("place", {}))
        wall = self.data / "wall.js"
        lines = wall.read_text(encoding="utf-8").rstrip("\n").split("\n")[1:-1] if wall.exists() else []
        if place.offset and (not lines or not records.still_valid(rollouts, place)):
            place, lines = Place(), []
        new = 0
        for count, (step, found, end) in enumerate(records.whole_steps(rollouts, place.offset, last), 1):
            lines.append(_json(self._step(step, found)) + ",")
            new += len(found)
            place = records.place_at(rollouts, end)
            show(f"gallery of {self.id}", step, max(last, step))
            if count % STEPS_AT_ONCE == 0:
                self._write_wall(lines, place)
        self._references(say, show, paint)
        self._write_wall(lines, place)
        steps = _script("steps", self.id, records.table(table))
        write_changed(self.data / "steps.js", steps)
        flight = self._flight(records.in_flight(self.run, place.offset, last))
        write_changed(self.data / "flight.js", flight)
        if new:
            say(f"{self.id}: {new} new rollouts, {last} steps")
        return self._described(zlib.crc32(flight, zlib.crc32(steps, zlib.crc32("\n".join(lines).encode()))), last)

    def _write_wall(self, lines: list[str], place: Place) -> None:
        head, tail = f"gallery.put({_json('wall')}, {_json(self.id)}, [", "]);"
        write_changed(self.data / "wall.js", "\n".join([head, *lines, tail, ""]).encode())
        self.entry["place"] = asdict(place)
        self.save()

    def _step(self, step: int, found: list[Record]) -> Record:
        """The pictures and the details of a step, written; the step's line of the wall."""
        colours, details, fields = self._look(found)
        write_changed(self.data / f"fields_{step:04d}.js", _script("fields", f"{self.id}/{step}", fields))
        write_changed(self.data / f"step_{step:04d}.js", _script("details", f"{self.id}/{step}", details))
        return records.packed(step, found, colours)

    def _flight(self, found: list[Record]) -> bytes:
        colours, details, fields = self._look(found)
        steps = sorted({record["step"] for record in found})
        lines = [records.packed(step, [one for one in found if one["step"] == step], colours) for step in steps]
        return _script("flight", self.id, {"lines": lines, "details": details, "fields": fields})

    def _look(self, found: list[Record]) -> tuple[dict[str, str], list[Record], dict[str, str]]:
        """Write the pictures of these rollouts. (mean colours, details, fields), the first and last by name."""
        colours, details, fields = {}, [], {}
        for record in found:
            name = records.name_of(record)
            source = self.run / "paintings" / f"{name}.png"
            seen = look(source) if record.get("painting") else None
            if seen is not None:
                link(source, self.out / "paintings" / self.id / f"{name}.png")
                write_changed(self.out / "thumbs" / self.id / f"{name}.webp", seen.small)
                colours[name], fields[name] = seen.colour, seen.fields
            details.append(records.detailed(record, self._sketch(record, name), seen.checksum if seen else None))
            for reference in records.references_of(record):
                self.entry["references"].setdefault(reference, None)
        return colours, details, fields

    def _sketch(self, record: Record, name: str) -> str | None:
        path = self.run / "sketches" / f"{name}.js"
        if not record.get("sketch") or not path.is_file():
            return None
        return path.read_text(encoding="utf-8", errors="replace")

    def _references(self, say: Say, show: Show, paint: bool) -> None:
        """The references that were met for the first time; what was not found is looked for again the next time."""
        met: dict[str, str | None] = self.entry["references"]
        if all(met.values()):
            return
        pool, why = find_pool(pool_settings(self.tables), render_settings(self.tables), paint, show)
        for reference in pool.references if pool else ():
            if reference.name in met:
                write_changed(self.out / "references" / self.id / f"{reference.name}.png", reference.png)
                met[reference.name] = reference.tier
        missing = [name for name, tier in met.items() if tier is None]
        if missing:
            say(f"{self.id}: {len(missing)} references without a picture ({why or 'not in the pool any more'})")

    def _described(self, version: int, last: int) -> Record:
        return {
            "id": self.id,
            "version": version,
            "last": last,
            "steps": self.tables.get("run", {}).get("steps"),
            "weights": weights(self.tables),
            "standIns": stand_ins(self.tables),
            "settings": described(self.tables),
            "references": self.entry["references"],
            "live": live_settings(render_settings(self.tables)),
        }


def _names(runs: Sequence[Path], state: Record) -> dict[str, str]:
    """A name for each run that may stand in paths: the folder's, with a number where two are equal."""
    names: dict[str, str] = {}
    for run in runs:
        key = str(run.resolve())
        known = state["runs"].get(key, {}).get("id")
        base, number = run.resolve().name, 1
        taken = {*names.values(), *(entry["id"] for path, entry in state["runs"].items() if path != key)}
        name = known or base
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        names[key] = name
    return names


def _write_page(out: Path, live: Live) -> bool:
    """The page and the studio; True where anything was written."""
    files = {f"page/{path.name}": path.read_bytes() for path in sorted(PAGE.iterdir()) if path.name not in FRAME}
    index = files.pop("page/index.html").replace(b"SCRIPT_HASHES", " ".join(live.hashes).encode())
    files |= {f"studio/{name}": content for name, content in live.files.items()}
    written = [write_changed(out / name, content) for name, content in files.items()]
    if not live.files:
        shutil.rmtree(out / "studio", ignore_errors=True)
    return write_changed(out / "index.html", index) or any(written)


def _read_state(out: Path) -> Record:
    try:
        state = json.loads((out / STATE).read_text(encoding="utf-8"))
        if state["format"] == FORMAT:
            return dict(state)
    except (FileNotFoundError, ValueError, KeyError):
        pass
    return {"format": FORMAT, "runs": {}}


def _write_state(out: Path, state: Record) -> None:
    write_whole(out / STATE, json.dumps(state).encode())


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _script(kind: str, key: str, value: Any) -> bytes:
    return f"gallery.put({_json(kind)}, {_json(key)}, {_json(value)});\n".encode()
