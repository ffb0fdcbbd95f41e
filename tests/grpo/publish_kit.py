"""Run folders to publish: the layout of real ones, rollouts of every kind, a stand-in for the adapter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gallery_kit
from gallery_kit import png

from grpo import config as configs

NAME = "ada/hibiscus"
POLICY = {
    "base": "Org/Base-1B",
    "class": "Qwen3ForCausalLM",
    "revision": "c0ffee" * 6 + "c0ff",
    "tokenizer": "Org/Base-1B",
    "tokenizer_revision": "c0ffee" * 6 + "c0ff",
    "quantization": "none",
    "weights": 1000,
    "trained": 10,
    "share": 0.01,
    "layers": 1,
    "adapted": ["model.layers.0.self_attn.q_proj"],
}
CARD = """---
base_model: BASE
library_name: peft
---
# An adapter that writes p5.brush sketches

| base | BASE |

## How to load it

In this folder:

```python
base = Qwen3ForCausalLM.from_pretrained('BASE')
```
"""
REASONS = {"love_one": ["softer bleeds", "muddy"], "okay_one": ["", "uses the sheet"]}


def start(folder: Path, *overrides: str, **policy: Any) -> Path:
    """A run folder with a checkpoint of step 0 and two pictures, before a step. policy: parts of policy.json."""
    for name in ("paintings", "sketches", "sheets"):
        (folder / name).mkdir(parents=True)
    source = folder.with_suffix(".toml")
    source.write_text('[policy]\nmodel = "Org/Base-1B"\n')
    (folder / "config.toml").write_text(configs.dump(configs.load(source, overrides)))
    (folder / "curve.png").write_bytes(png("#202020"))
    (folder / "sheets" / "step_0001.png").write_bytes(png("#303030"))
    checkpoint(folder, 0, **policy)
    return folder


def checkpoint(folder: Path, step: int, **policy: Any) -> Path:
    """A stand-in for a checkpoint: the files of a real one, weights that are a few bytes."""
    described = {**POLICY, **policy}
    place = folder / "checkpoints" / f"step_{step:04d}"
    (place / "adapter").mkdir(parents=True)
    files = {
        "adapter/adapter_model.safetensors": f"weights of step {step}\0" * 40,
        "adapter/adapter_config.json": json.dumps({"base_model_name_or_path": described["base"], "r": 4}),
        "adapter/policy.json": json.dumps(described),
        "adapter/README.md": CARD.replace("BASE", str(described["base"])),
        "optimizer.pt": "moments\0",
        "state.json": json.dumps({"step": step}),
    }
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def plain_step(folder: Path, number: int, count: int = 4) -> None:
    """A step of scored rollouts with paintings."""
    gallery_kit.plain_step(folder, number, count)
    _table(folder)


def mixed_step(folder: Path, number: int, **more: Any) -> None:
    """Rollout 0 is scored, with the judge's reasons, 1 rejected unpainted, 2 painted and unscored. more: of 0."""
    judge = {"won": {"love_one": 0.25}, "reasons": REASONS}
    records = [
        gallery_kit.rollout(number, 0, 0.4, **{"advantage": 0.1, "terms_info": {"judge": judge}, **more}),
        gallery_kit.rollout(
            number, 1, 0.0, outcome="rejected", reason="syntax_error", detail="no }", terms={"gate": 0.0}, painting=None
        ),
        gallery_kit.rollout(number, 2, None, outcome="unscored", reason="judge", detail="no answer", terms={}),
    ]
    gallery_kit.step(folder, number, records, {0: png("#a04060"), 2: png("#40a060")})
    _table(folder)


def _table(folder: Path) -> None:
    """metrics.csv beside metrics.jsonl."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = ["step,reward", *(f"{row['step']},{row['reward']}" for row in rows)]
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
