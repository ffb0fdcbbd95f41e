"""How different the paintings of a group are, so that a policy that paints one flower again and again is seen.

    feature distance  root mean square over the statistics of reward.features, each over its standard deviation among
                      all paintings of the report: 0 = the same painting, about 1.4 = two drawn at random from it
    colour distance   mean CIE76 colour difference of the pixels at 64 x 64, as grpo.probe has it: 0 = the same,
                      2 is about what an eye can tell, 100 black beside white

Each is the mean over all pairs of paintings of a group. The first is relative to the report, the second is not: a run
that has collapsed before it began shows in the second.

Measuring takes some 20 ms a painting. A cache file keeps a line a group, written as soon as the group is measured: a
report that was interrupted goes on there, and a second one measures what is new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grpo.folder import read_rows, write_error
from grpo.report.source import Source
from render import pixels
from render.disk import write_whole
from reward import features

Group = tuple[int, int]  # step, group of the step
Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Looks:
    """features: of each group (paintings, statistics). colours: its colour distance; None for fewer than two."""

    features: dict[Group, Vectors]
    colours: dict[Group, float | None]


def look(source: Source, cache: Path, show: Callable[[int, int], None] = lambda done, total: None) -> Looks | None:
    """Measure the paintings of a run, or read what was measured before from `cache`; None where there are none.

    show(done, total): groups measured, of those that are not known yet. Raises UserError when the disk refuses.
    """
    if source.folder is None or source.samples is None:
        return None
    groups: dict[Group, list[Path]] = {}
    for sample in source.samples:
        path = source.folder / "paintings" / f"{sample.name}.png"
        if sample.coverage is not None and path.is_file():
            groups.setdefault((sample.step, sample.group), []).append(path)
    if not groups:
        return None
    keys = {group: [_key(path) for path in paths] for group, paths in groups.items()}
    known = _read(cache, keys)
    missing = [group for group in groups if group not in known]
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        # Lines that are out of date or were cut short go.
        write_whole(cache, "".join(_line(known[group]) for group in groups if group in known).encode())
        with cache.open("a", encoding="utf-8") as stream:
            for done, group in enumerate(missing):
                show(done, len(missing))
                known[group] = _measure(group, groups[group], keys[group])
                stream.write(_line(known[group]))
                stream.flush()
    except OSError as error:
        raise write_error(cache, error) from error
    if missing:
        show(len(missing), len(missing))
    return Looks(
        {group: np.array(known[group]["features"], dtype=np.float64) for group in groups},
        {group: known[group]["colour"] for group in groups},
    )


def feature_distances(looks: Sequence[Looks | None]) -> list[dict[Group, float]]:
    """For each run its groups' feature distances, all in the same unit; groups of one painting are left out."""
    parts = [vectors for one in looks if one for vectors in one.features.values()]
    if not parts:
        return [{} for _ in looks]
    scale = np.concatenate(parts).std(axis=0)
    varies = scale > 1e-9
    return [
        {
            group: _mean_distance(vectors[:, varies] / scale[varies])
            for group, vectors in (one.features.items() if one else ())
            if len(vectors) > 1
        }
        for one in looks
    ]


def _mean_distance(vectors: Vectors) -> float:
    """Mean over all pairs of the root mean square difference; 0 where nothing varies."""
    if not vectors.shape[1]:
        return 0.0
    pairs = [np.sqrt(((first - second) ** 2).mean()) for first, second in combinations(vectors, 2)]
    return float(np.mean(pairs))


def _measure(group: Group, paths: Sequence[Path], keys: Sequence[str]) -> dict[str, Any]:
    vectors, labs = [], []
    for path in paths:
        rgb = pixels.decode(path.read_bytes())
        vectors.append([float(value) for value in features.measure_picture(rgb).values()])
        labs.append(features.small_lab(rgb))
    colour = features.colour_distance(labs)
    return {"step": group[0], "group": group[1], "keys": list(keys), "features": vectors, "colour": colour}


def _key(path: Path) -> str:
    """Tells a file from what it was before, without reading it; other code measures otherwise."""
    stat = path.stat()
    return f"{path.name} {stat.st_size} {stat.st_mtime_ns} {_CODE}"


def _code() -> str:
    """Hash of the code that decides the numbers."""
    digest = hashlib.sha256()
    for module in (features.__file__, pixels.__file__, __file__):
        digest.update(Path(module).read_bytes())
    return digest.hexdigest()[:12]


_CODE = _code()


def _read(cache: Path, keys: dict[Group, list[str]]) -> dict[Group, dict[str, Any]]:
    """Lines that still hold for the paintings that are there."""
    found = {}
    for row in read_rows(cache):
        group = (row["step"], row["group"])
        if keys.get(group) == row["keys"]:
            found[group] = row
    return found


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"
