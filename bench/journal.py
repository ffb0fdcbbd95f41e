"""What a run has found so far, on disk at every moment: a JSON line for each painting, the pictures, the facts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.summary import Sample
from render.disk import write_whole
from render.errors import UserError


class Journal:
    """Results of one run in one folder: `paintings.jsonl`, `pictures/PROFILE/SKETCH.png`, `results.json`.

    samples: the paintings so far. pictures: the first PNG of each profile and sketch. facts: everything else.
    """

    def __init__(self, folder: Path, profiles: Sequence[str]) -> None:
        """Raises UserError when the folder cannot be written."""
        self.folder = folder
        self.samples: list[Sample] = []
        self.pictures: dict[tuple[str, str], bytes] = {}
        self.facts: dict[str, Any] = {}
        try:
            for profile in profiles:
                (folder / "pictures" / profile).mkdir(parents=True, exist_ok=True)
            self._lines = (folder / "paintings.jsonl").open("w", encoding="utf-8")
        except OSError as error:
            raise UserError(f"--out {folder}: {error.strerror}") from error

    def add(self, sample: Sample, png: bytes) -> None:
        self.samples.append(sample)
        self._lines.write(json.dumps(asdict(sample)) + "\n")
        self._lines.flush()
        key = sample.profile, sample.sketch
        if key not in self.pictures and not sample.stage.startswith("set "):
            self.pictures[key] = png
            (self.folder / "pictures" / sample.profile / f"{sample.sketch}.png").write_bytes(png)

    def note(self, name: str, value: Any) -> None:
        """Keep a fact under a name and write all facts."""
        self.facts[name] = value
        text = json.dumps(_plain(self.facts), indent=1, allow_nan=False)
        write_whole(self.folder / "results.json", (text + "\n").encode())

    def close(self) -> None:
        self._lines.close()


def _plain(value: Any) -> Any:
    """The same with None for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
