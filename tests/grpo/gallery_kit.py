"""Small run folders for the gallery's tests: every kind of rollout, each picture of a colour of its own."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

from PIL import Image

from grpo.journal import Journal

EVIL = "</script><img src=x onerror=\"document.title='EVIL'\"><svg onload=\"document.title='EVIL'\">"
SUBJECTS = ("a peach hibiscus", "a blue vase")
CONFIG = """
[run]
steps = 9
[render]
seed = 7
[reward]
judge = "vlm"
[reward.weights]
gate = 0.1
length = 0.0
coverage = 0.1
preference = 0.3
judge = 0.5
[pool]
source = "POOL"
"""


def png(colour: str, size: tuple[int, int] = (64, 64)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGBA", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def pool(folder: Path) -> Path:
    """Two references, one of each tier."""
    (folder / "images").mkdir(parents=True)
    lines = []
    for tier, colour in (("love", "#ff0000"), ("okay", "#0000ff")):
        (folder / "images" / f"{tier}_one.png").write_bytes(png(colour))
        lines.append(json.dumps({"tier": tier, "file_name": f"images/{tier}_one.png"}) + "\n")
    (folder / "metadata.jsonl").write_text("".join(lines))
    return folder


def start(folder: Path, pool_folder: Path | str = "embedded") -> Path:
    for name in ("paintings", "sketches"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.replace("POOL", str(pool_folder)))
    return folder


def rollout(step: int, index: int, reward: float | None, **more: Any) -> dict[str, Any]:
    """A scored rollout's record, as grpo.rollout writes it; `more` replaces parts."""
    terms = {"gate": 1.0, "coverage": 0.5, "preference": 0.25, "judge": reward}
    return {
        **{"step": step, "index": index, "group": index % 2, "subject": SUBJECTS[index % 2], "reward": reward},
        **{"advantage": 0.0, "outcome": "scored", "reason": "", "detail": "", "terms": terms, "terms_info": {}},
        **{"finished": True, "tokens": 100 + index, "prompt_ids": [1], "completion_ids": [2]},
        **{"text": f"// sketch {step} {index}\nfunction setup() {{}}", "sketch": True},
        "painting": {
            **{"outcome": "painted", "reason": "", "detail": "", "line": None, "width": 64, "height": 64},
            **{"coverage": 0.1 * index, "shapes": index, "vertices": 3, "circles": 0, "errors": [], "finished": True},
            **{"timings": {"total": 1.5}, "worker": 0, "attempt": 1},
        },
        "timings": {"sampled": 1.0, "scored": 2.0},
        **more,
    }


def step(
    folder: Path, number: int, records: list[dict[str, Any]], pictures: dict[int, bytes], whole: bool = True
) -> None:
    """Append a step as the journal does; whole = False: as the step in flight."""
    for record in records:
        name = f"step_{number:04d}_{record['index']:02d}"
        if record["sketch"]:
            (folder / "sketches" / f"{name}.js").write_text(record["text"])
        if record["index"] in pictures:
            (folder / "paintings" / f"{name}.png").write_bytes(pictures[record["index"]])
    lines = "".join(json.dumps(record) + "\n" for record in records)
    if not whole:
        (folder / "rollouts.partial.jsonl").write_text(lines)
        return
    with (folder / "rollouts.jsonl").open("a") as stream:
        stream.write(lines)
    (folder / "rollouts.partial.jsonl").unlink(missing_ok=True)
    rewards = [record["reward"] for record in records if record["reward"] is not None]
    row = {
        "step": number,
        "reward": sum(rewards) / len(rewards),
        "entropy": 1.0 / number,
        "rollouts/scored": len(rewards),
    }
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write(json.dumps(row) + "\n")


def plain_step(folder: Path, number: int, count: int = 4) -> None:
    """A step of scored rollouts; rollout i of step n has the reward (n + i) / 100."""
    pictures = {index: png(f"#{40 + 20 * index:02x}{number * 15:02x}80") for index in range(count)}
    step(folder, number, [rollout(number, index, (number + index) / 100) for index in range(count)], pictures)


def rewind(folder: Path, last: int) -> None:
    """What a resumed run does first."""
    Journal(folder, ["step", "reward", "entropy", "rollouts/scored"]).rewind(last)
    shutil.rmtree(folder / "sheets")
