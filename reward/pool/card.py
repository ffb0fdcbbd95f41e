"""The dataset card of a pool: README.md with the header that the Hugging Face Hub reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reward.pool import TIERS
from reward.pool.workshop import tally

UNKNOWN = "unknown"


def card(rows: Sequence[Mapping[str, Any]], title: str, licence: str, candidates: int) -> str:
    """The text, from the lines of metadata.jsonl. candidates: paintings that there were to choose from."""
    models = tally(row.get("generator_model") or UNKNOWN for row in rows)
    subjects = tally(row.get("subject") or UNKNOWN for row in rows)
    head = [
        "---",
        f"license: {json.dumps(licence)}",
        f"pretty_name: {json.dumps(title)}",
        "tags: [art, code-generation, p5.brush, preference]",
        f"size_categories: ['{_size(len(rows))}']",
        "---",
        "",
        f"# {title}",
        "",
        f"{len(rows)} paintings of two tiers, `love` and `okay`, chosen by a person out of {candidates}. They stand "
        "for a taste: a model that learns to paint has its paintings compared with them.",
        "",
        "| painted by | " + " | ".join(TIERS) + " | all |",
        "|---|" + "---|" * (len(TIERS) + 1),
        *(_count(model, [row for row in rows if (row.get("generator_model") or UNKNOWN) == model]) for model in models),
        _count("all", rows),
        "",
        "Subjects: " + "; ".join(f"{subject} ({count})" for subject, count in subjects.items()) + ".",
        "",
        "## How it was made",
        "",
        *_making(rows),
        "",
        "## Layout",
        "",
        "`images/{tier}_{name}.png`, `sources/{tier}_{name}.js` (the p5.brush sketch that paints it) and "
        "`metadata.jsonl`, a line a painting:",
        "",
        *(f"- `{key}`" + (f": {ABOUT[key]}" if key in ABOUT else "") for key in rows[0]),
        "",
        "## How to use it",
        "",
        "In the config of a run, with the folder, or with the dataset and the commit that it was published under:",
        "",
        "```toml",
        "[pool]",
        'source = "ORG/NAME"',
        'revision = "COMMIT"',
        "```",
        "",
        "## Licence",
        "",
        f"{licence}. {_photos(rows)}",
        "",
    ]
    return "\n".join(head)


ABOUT = {
    "tier": "`love` or `okay`",
    "refinement_round": "how many revisions after feedback it took",
    "hpsv3_mu": "mean of HPSv3's score",
    "paint_coverage": "share of pixels that differ from the paper",
    "gate_errors": "what the sketch threw after it had painted",
    "strength": "of Bradley and Terry, in logits, from pairs that a person compared",
    "reference_photo": "the photograph it was painted from; licence, attribution and url beside it",
}


def _count(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    counts = [sum(row["tier"] == tier for row in rows) for tier in TIERS]
    return "| " + " | ".join([name, *map(str, counts), str(len(rows))]) + " |"


def _making(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["Each painting is a p5.brush sketch, painted in Chromium with a fixed seed."]
    rounds = tally(row["refinement_round"] for row in rows if row.get("refinement_round") is not None)
    if rounds:
        parts = ", ".join(f"round {number}: {rounds[number]}" for number in sorted(rounds, key=int))
        lines.append(f"Rounds of revision ({parts}).")
    critics = tally(row["critic_model"] for row in rows if row.get("critic_model"))
    if critics:
        lines.append("Written feedback on the painting came from " + ", ".join(critics) + ".")
    compared = sum(row.get("strength") is not None for row in rows)
    how = "A person rated them one at a time"
    lines.append(f"{how}; {compared} were also compared in pairs." if compared else f"{how}.")
    return [" ".join(lines)]


def _photos(rows: Sequence[Mapping[str, Any]]) -> str:
    with_photo = [row for row in rows if row.get("reference_photo")]
    if not with_photo:
        return "No photographs were used."
    licences = tally(row.get("reference_photo_licence") or UNKNOWN for row in with_photo)
    parts = ", ".join(f"{licence}: {count}" for licence, count in licences.items())
    return (
        f"Made after photographs: {len(with_photo)} ({parts}). Their authors are named in "
        "metadata.jsonl and must be named again wherever these paintings are shown."
    )


def _size(count: int) -> str:
    return "n<1K" if count < 1000 else "1K<n<10K"
