"""The rollouts of a run as rows of a dataset: an imagefolder in the sense of the `datasets` library.

    rollouts/step_0001/metadata.jsonl    a line a rollout; `file_name` is its painting, null where there is none
    rollouts/step_0001/*.png             the paintings

Every row has every column, and the card's header names the types, so that a step without a painting or without a
scored rollout reads like any other. Left out: token ids, which need the policy's tokenizer, and timings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo.gallery.records import Record, name_of, whole_steps
from grpo.publish.secrets import Cleaner
from reward.settings import WeightSettings

FOLDER = "rollouts"


@dataclass(frozen=True)
class Step:
    """A step's rows and its paintings. painting: file name -> where it lies. outcomes: counts."""

    number: int
    rows: tuple[Record, ...]
    paintings: Mapping[str, Path]
    outcomes: Mapping[str, int]

    @property
    def folder(self) -> str:
        return f"{FOLDER}/step_{self.number:04d}"

    @property
    def metadata(self) -> bytes:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows).encode()


def terms(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the terms that the run's reward has."""
    if config["reward"]["task"] == "fills":
        return ("fills",)
    return tuple(WeightSettings().as_dict())


def columns(config: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Name of each column -> its type in the header, and what it means. The order is that of the rows.

    A task that paints nothing has no pictures: then it is a dataset of JSON lines.
    """
    painting = {"image": ("image", "the painting; empty where nothing was painted")}
    return {
        **({} if config["reward"]["task"] == "fills" else painting),
        "step": ("int64", "training step, from 1"),
        "index": ("int64", "place in the step, from 0"),
        "group": ("int64", "rollouts of one prompt share a group"),
        "subject": ("string", "what was to be painted"),
        "outcome": ("string", "scored, rejected (the sketch's fault) or unscored (the machine's)"),
        "reason": ("string", "the rule that a rejected sketch broke"),
        "detail": ("string", "the reason in full"),
        "reward": ("float64", "what GRPO saw: 0.0 for a rejected sketch, empty for an unscored one"),
        "advantage": ("float64", "reward minus the mean of the group, scaled as the config says"),
        **{f"reward_{term}": ("float64", f"score of the term `{term}`, before its weight") for term in terms(config)},
        "judge_reasons": ("string", "what the judge said about each comparison, where it gives reasons"),
        "coverage": ("float64", "share of the canvas that has paint"),
        "shapes": ("int64", "filled shapes that were really drawn"),
        "tokens": ("int64", "length of the completion"),
        "finished": ("bool", "ended by itself, not by the limit"),
        "sketch": ("string", "the p5.brush sketch"),
        "text": ("string", "the whole completion"),
        "scores": ("string", "details of each term, as JSON"),
    }


def steps(folder: Path, config: Mapping[str, Any], cleaner: Cleaner, last: int) -> Iterator[Step]:
    """The whole steps of a run up to `last`, in order."""
    painted = "image" in columns(config)
    for number, records, _ in whole_steps(folder / "rollouts.jsonl", 0, last):
        rows, paintings = [], {}
        for record in sorted(records, key=lambda record: record["index"]):
            name = name_of(record)
            painting = folder / "paintings" / f"{name}.png"
            has_painting = bool(record.get("painting")) and painting.is_file()
            if has_painting:
                paintings[painting.name] = painting
            source = folder / "sketches" / f"{name}.js"
            sketch = source.read_text(encoding="utf-8") if record.get("sketch") and source.is_file() else ""
            row = _row(record, sketch, terms(config), cleaner)
            rows.append({"file_name": painting.name if has_painting else None, **row} if painted else row)
        yield Step(number, tuple(rows), paintings, Counter(record["outcome"] for record in records))


def _row(record: Record, sketch: str, names: tuple[str, ...], cleaner: Cleaner) -> Record:
    painting, scores = record.get("painting") or {}, record.get("terms") or {}
    return {
        **{key: record[key] for key in ("step", "index", "group")},
        **{key: cleaner.text(str(record.get(key) or "")) for key in ("subject", "outcome", "reason", "detail")},
        "reward": _number(record["reward"]),
        "advantage": _number(record["advantage"]),
        **{f"reward_{name}": _number(scores.get(name)) for name in names},
        "judge_reasons": cleaner.text(_reasons(record)),
        "coverage": _number(painting.get("coverage")),
        "shapes": painting.get("shapes"),
        "tokens": record["tokens"],
        "finished": record["finished"],
        "sketch": cleaner.text(sketch),
        "text": cleaner.text(record["text"]),
        "scores": cleaner.text(json.dumps(record.get("terms_info") or {}, ensure_ascii=False)),
    }


def _reasons(record: Record) -> str:
    """A line for each reference: what the judge said with the candidate first, and second."""
    said = ((record.get("terms_info") or {}).get("judge") or {}).get("reasons") or {}
    return "\n".join(f"{reference}: {' / '.join(part for part in both if part)}" for reference, both in said.items())


def _number(value: Any) -> float | None:
    """A float, or None for what is not one (the journal writes NaN as text)."""
    return float(value) if isinstance(value, (int, float)) else None
