"""The single looks at a pool that `check` puts together: its lines and files, its licences, its pictures.

difference   mean CIE76 colour difference, each painting against its own paper, over the pixels (64 x 64) that carry
             paint in either: under 1.5 for the same picture in another file format or size, 5 to 10 for one sketch
             painted with two seeds, above 10 for two different paintings of the embedded pool
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from render import pixels
from render.errors import UserError
from reward import features
from reward.pool import EMBEDDED, TIERS
from reward.pool.workshop import METADATA
from reward.settings import CoverageSettings, PoolSettings

COLUMNS = (
    "file_name",
    "source_file",
    "tier",
    "subject",
    "generator_model",
    "refinement_round",
    "hpsv3_mu",
    "paint_coverage",
    "gate_errors",
    "critic_model",
    "strength",
    "title",
    "seed",
    "reference_photo",
    "reference_photo_licence",
    "reference_photo_attribution",
    "reference_photo_url",
)
SAME, NEAR = 3.0, 9.0
SIDE = 64
COVERAGE_OFF = 0.02  # of paint_coverage from what the image shows


@dataclass(frozen=True)
class Finding:
    """One thing to mend. where: the painting or the line. text: what is wrong, and what would be right."""

    kind: str
    where: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One line of metadata.jsonl that can be used. png: None where only the sketch is there."""

    name: str
    tier: str
    png: bytes | None
    meta: Mapping[str, Any]


def read_pool(settings: PoolSettings) -> tuple[Path, list[Entry], list[Finding], list[str]]:
    """(folder, usable entries, findings about the format, notes). Raises UserError where there is no metadata."""
    folder = EMBEDDED if settings.source == "embedded" else Path(settings.source).expanduser()
    path = folder / METADATA
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{folder} is not a pool: its {METADATA} cannot be read ({error})") from error
    entries: list[Entry] = []
    findings: list[Finding] = []
    columns: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{METADATA}:{number}"
        try:
            meta = json.loads(line)
        except ValueError:
            meta = None
        if not isinstance(meta, dict):
            findings.append(Finding("format", where, "not a line with one JSON object; write it anew or take it out"))
            continue
        columns.update(meta.keys())
        entry, wrong = _read_entry(folder, meta, where)
        findings += wrong
        if entry is not None and any(entry.name == other.name for other in entries):
            findings.append(Finding("format", where, f"a second painting called {entry.name}; rename one"))
        elif entry is not None:
            entries.append(entry)
    more, notes = _columns(columns)
    without = sum(not isinstance(entry.meta.get("source_file"), str) for entry in entries)
    if without:
        notes.append(f"without a sketch: {without}; nothing needs it, but nobody can learn from it either")
    return folder, entries, findings + more, notes


def _read_entry(folder: Path, meta: dict[str, Any], where: str) -> tuple[Entry | None, list[Finding]]:
    findings = []
    tier = meta.get("tier")
    if tier not in TIERS:
        findings.append(Finding("format", where, f"tier is {tier!r}; it must be {' or '.join(TIERS)}"))
    files: dict[str, Path | None] = {}
    for key in ("file_name", "source_file"):
        value = meta.get(key)
        files[key] = None
        if value is None:
            continue
        if not isinstance(value, str) or not value or Path(value).is_absolute() or ".." in Path(value).parts:
            findings.append(Finding("format", where, f"{key} is {value!r}; it must be a path inside the pool"))
        elif (folder / value).is_file():
            files[key] = folder / value
        elif key == "source_file":
            findings.append(Finding("format", where, f"{value} is not there; bring it, or leave source_file out"))
    image, source = files["file_name"], files["source_file"]
    if image is None and source is None:
        text = f"neither an image ({meta.get('file_name')}) nor a sketch is there; one of them is needed"
        return None, [*findings, Finding("format", where, text)]
    png = image.read_bytes() if image else None
    if png is not None:
        try:
            pixels.decode(png)
        except ValueError:
            text = f"{meta['file_name']} cannot be read as an image; paint it again from its sketch"
            return None, [*findings, Finding("format", where, text)]
    name = (image or source or folder).stem
    other = next((known for known in TIERS if name.startswith(f"{known}_") and known != tier), None)
    if other is not None and tier in TIERS:
        findings.append(Finding("format", where, f"{name} is named {other}, but its tier is {tier}; one must change"))
    return (Entry(name, tier, png, meta) if tier in TIERS else None), findings


def _columns(columns: Mapping[str, int]) -> tuple[list[Finding], list[str]]:
    """Names that look like a slip of the pen are findings, other unknown ones a note."""
    findings, others = [], []
    for name, count in columns.items():
        if name in COLUMNS:
            continue
        near = get_close_matches(name, COLUMNS, n=1, cutoff=0.8)
        if near and columns.get(near[0], 0) < count:
            text = f"column {name} ({count} lines) is not known; {near[0]} seems to be meant"
            findings.append(Finding("format", METADATA, text))
        else:
            others.append(name)
    return findings, [f"columns that nothing here reads: {', '.join(others)}"] if others else []


def licences(entries: Sequence[Entry]) -> list[Finding]:
    """Photographs whose licence or author is not named, whatever exactly the columns are called."""
    findings = []
    for entry in entries:
        said = {key.lower(): value for key, value in _flat(entry.meta) if value not in (None, "", [], {})}
        if not any("photo" in key for key in said):
            continue
        gone = [
            what
            for what, words in (("licence", ("licen",)), ("attribution", ("attribution", "author", "credit")))
            if not any("photo" in key and word in key for key in said for word in words)
        ]
        if gone:
            text = f"painted from a photograph without {' and '.join(gone)}; name {'them' if gone[1:] else 'it'}, "
            findings.append(Finding("licence", entry.name, text + "or take the painting out"))
    return findings


def _flat(value: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        if isinstance(inner, dict):
            found += _flat(inner, f"{before}{key}.")
        else:
            found.append((f"{before}{key}", inner))
    return found


def coverages(entries: Sequence[Entry], pictures: Mapping[str, bytes]) -> tuple[dict[str, float], list[Finding]]:
    """(coverage by name, findings)."""
    bounds = CoverageSettings()
    covered = {name: pixels.coverage(png) for name, png in pictures.items()}
    findings = []
    for entry in entries:
        share = covered.get(entry.name)
        if share is None:
            continue
        if not bounds.lowest < share < bounds.highest:
            text = (
                f"paint covers {share:.3f} of the sheet; between {bounds.lowest:g} and {bounds.highest:g} is expected"
            )
            findings.append(Finding("coverage", entry.name, text))
        told = entry.meta.get("paint_coverage")
        if isinstance(told, int | float) and abs(told - share) > COVERAGE_OFF:
            text = f"paint_coverage says {told:.3f}, the image shows {share:.3f}; are image and line of one painting?"
            findings.append(Finding("coverage", entry.name, text))
    return covered, findings


def duplicates(pictures: Mapping[str, bytes]) -> list[Finding]:
    """Pairs of paintings that are the same or nearly so."""
    looks = {name: _look(png) for name, png in pictures.items()}
    findings = []
    for one, other in combinations(looks, 2):
        difference = _difference(looks[one], looks[other])
        if difference < NEAR:
            like = "the same picture as" if difference < SAME else "nearly the same painting as"
            text = f"{like} {other} (difference {difference:.1f}, two paintings have {NEAR:g} and more); keep one"
            findings.append(Finding("duplicate", one, text))
    return findings


def _look(png: bytes) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """CIE Lab against the paper (SIDE, SIDE, 3), and where there is paint."""
    rgb = pixels.decode(png)
    paper = features.to_lab(features.paper_colour(rgb).reshape(1, 1, 3))[0, 0]
    lab = features.to_lab(cv2.resize(rgb, (SIDE, SIDE), interpolation=cv2.INTER_AREA)) - paper
    return lab, np.linalg.norm(lab, axis=2) > features.PAINT_FROM


def _difference(
    one: tuple[NDArray[np.float32], NDArray[np.bool_]], other: tuple[NDArray[np.float32], NDArray[np.bool_]]
) -> float:
    painted = one[1] | other[1]
    if not painted.any():
        return 0.0
    return float(np.linalg.norm(one[0][painted] - other[0][painted], axis=1).mean())
