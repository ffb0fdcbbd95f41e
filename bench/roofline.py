"""python -m bench.roofline: where the seconds of a step on one H200 go, on paper.

No GPU is asked. Shapes come from the models' configurations, counted on the meta device; the operators of one decoding
step are counted by running models of the same classes with 4 and 8 layers on the CPU, and extrapolated, because every
fourth layer is alike. From there on it is arithmetic:

  floor        bytes that one decoding step must move / (bandwidth * share of it that is reached): the weights of all
               layers, those of the experts that the group's tokens are expected to choose, E (1 - (1 - k/E)^B) of E,
               keys and values, recurrent states read and written
  eager        operators * microseconds each: the time that plain `generate` needs to launch them, whatever they do
  update       6 * active weights * tokens: forward, recomputed forward, and gradients of the activations, through
               frozen weights; at a share of the peak
  paint, score what docs/RENDERING.md and docs/SCORERS.md say, hidden behind sampling or a second or two

What is assumed and not measured stands in ASSUMED and is printed with the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from grpo.memory import layers as layers_of
from grpo.size import count

VOCABULARY, GROUP, PROMPT = 248_320, 8, 700
LENGTHS = (2_500, 8_192)
ASSUMED = {
    "bandwidth of an H200, TB/s": 4.8,
    "share of it reached": 0.7,
    "peak in bfloat16, TFLOP/s": 989.0,
    "microseconds to launch an operator": 9.0,
    "share of the peak in the update": 0.25,
    "seconds to score 8 paintings (12 TFLOP each)": 0.4,
}
HYBRID = {
    "vocab_size": VOCABULARY,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}
SHAPES: dict[str, dict[str, Any]] = {
    "Qwen3.5-35B-A3B": {
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "tie_word_embeddings": False,
    },
    "Qwen3.5-9B": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
    "Qwen3.5-4B": {
        "hidden_size": 2560,
        "intermediate_size": 9216,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "tie_word_embeddings": True,
    },
}


@dataclass(frozen=True)
class Size:
    """Numbers of weights.

    fixed: read by every decoding step (layers without routed experts, the head). experts: routed, of all layers.
    embedding: looked up only (0 where it is the head).
    """

    fixed: int
    experts: int
    embedding: int

    @property
    def total(self) -> int:
        return self.fixed + self.experts + self.embedding


def config_of(shape: dict[str, Any]) -> Any:
    from transformers import Qwen3_5MoeTextConfig, Qwen3_5TextConfig

    if "num_experts" in shape:
        return Qwen3_5MoeTextConfig(**{**HYBRID, **shape}, architectures=["Qwen3_5MoeForCausalLM"])
    return Qwen3_5TextConfig(**{**HYBRID, **shape}, architectures=["Qwen3_5ForCausalLM"])


def size_of(shape: dict[str, Any]) -> Size:
    """The weights of the text model, counted without making them."""
    found = count(config_of(shape), None)
    embedding = found["embedding"] if found["head"] else 0  # tied: it is the head
    return Size(found["text"] - found["experts"] - embedding, found["experts"], embedding)


def bytes_of_a_step(shape: dict[str, Any], size: Size, context: float, rows: int = GROUP) -> dict[str, float]:
    """Bytes that one decoding step of `rows` sequences of `context` tokens moves, by what they are (bfloat16)."""
    config = config_of(shape)
    linear, full = layers_of(config)
    share = 0.0
    if size.experts:
        share = 1.0 - (1.0 - config.num_experts_per_tok / config.num_experts) ** rows
    state = linear * config.linear_num_value_heads * config.linear_key_head_dim * config.linear_value_head_dim
    return {
        "weights": 2.0 * size.fixed,
        "experts": 2.0 * size.experts * share,
        "keys and values": 2.0 * rows * context * full * 2 * config.num_key_value_heads * config.head_dim,
        "recurrent states": 4.0 * rows * state * 2,  # float32, read and written
    }


def active(shape: dict[str, Any], size: Size) -> float:
    """Weights that one token goes through."""
    config = config_of(shape)
    routed = size.experts * config.num_experts_per_tok / config.num_experts if size.experts else 0.0
    return size.fixed + routed


def tiny(shape: dict[str, Any], layers: int) -> Any:
    """A model of the same class and the same kinds of layers, small enough to run."""
    import torch
    from transformers import AutoModelForCausalLM

    small = {"hidden_size": 64, "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2}
    small |= {"vocab_size": 64, "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
    small |= {"linear_key_head_dim": 16, "linear_value_head_dim": 16}
    if "num_experts" in shape:
        small |= {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
        small |= {"shared_expert_intermediate_size": 16}
    else:
        small |= {"intermediate_size": 64}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config_of({**shape, **small})).eval()


def count_operators(model: Any, rows: int = GROUP) -> int:
    """Operators that launch work in one decoding step: all but those that only make a view."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            returns = func._schema.returns
            view = any(one.alias_info is not None and not one.alias_info.is_write for one in returns)
            self.count += not view
            return func(*args, **(kwargs or {}))

    ids = torch.ones((rows, 5), dtype=torch.long)
    with torch.no_grad():
        first = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=True)
        counter = Counter()
        with counter:
            model(
                input_ids=ids[:, :1],
                attention_mask=torch.ones((rows, 6), dtype=torch.long),
                past_key_values=first.past_key_values,
                use_cache=True,
                logits_to_keep=1,
            )
    return counter.count


def operators(shape: dict[str, Any], adapter: bool) -> int:
    """Operators of one decoding step of the whole model, extrapolated from 4 and 8 layers."""
    counts = []
    for layers in (4, 8):
        model = tiny(shape, layers)
        if adapter:
            from grpo.config import LoraSettings
            from grpo.policy import add_adapter

            model, _ = add_adapter(model, LoraSettings(rank=4, alpha=8))
        counts.append(count_operators(model))
    each = (counts[1] - counts[0]) / 4
    return round(counts[0] + each * (shape["num_hidden_layers"] - 4))


@dataclass(frozen=True)
class Step:
    """Seconds of a step of GROUP completions of `length` tokens."""

    length: int
    floor: float
    merged: float
    adapter: float
    update: float

    @property
    def total(self) -> tuple[float, float]:
        """With plain generate and the adapter apart, and at the floor."""
        rest = self.update + ASSUMED["seconds to score 8 paintings (12 TFLOP each)"]
        return max(self.adapter, self.floor) + rest, self.floor + rest


def step_of(shape: dict[str, Any], size: Size, length: int, counts: tuple[int, int]) -> Step:
    moved = sum(bytes_of_a_step(shape, size, PROMPT + length / 2).values())
    bandwidth = ASSUMED["bandwidth of an H200, TB/s"] * 1e12 * ASSUMED["share of it reached"]
    launch = ASSUMED["microseconds to launch an operator"] * 1e-6
    peak = ASSUMED["peak in bfloat16, TFLOP/s"] * 1e12 * ASSUMED["share of the peak in the update"]
    floor = length * moved / bandwidth
    merged, adapter = (max(floor, length * count * launch) for count in counts)
    update = 6.0 * active(shape, size) * GROUP * (PROMPT + length) / peak
    return Step(length, floor, merged, adapter, update)


def _read(size: Size, moved: dict[str, float]) -> str:
    return f" ({moved['experts'] / (2.0 * size.experts):.0%})" if size.experts else ""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.roofline", description="A step on one H200, on paper.")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the tables")
    arguments = parser.parse_args(argv)
    from grpo.build import quiet_libraries

    quiet_libraries()
    warnings.simplefilter("ignore", FutureWarning)
    console, found = Console(), {}
    weights = Table(title="Billions of weights, and gigabytes that one decoding step moves", title_justify="left")
    steps = Table(title=f"Seconds of a step of {GROUP} completions, on paper", title_justify="left")
    for column in (
        "model",
        "weights",
        "active",
        "GB: weights",
        "experts (read)",
        "keys, values",
        "states",
        "ms at the floor",
    ):
        weights.add_column(column, justify="left" if column == "model" else "right")
    for column in (
        "model",
        "tokens",
        "operators\nmerged / adapter apart",
        "sample:\nfloor",
        "eager,\nmerged",
        "eager,\nadapter apart",
        "update",
        "step:\nas it is / floor",
    ):
        steps.add_column(column, justify="left" if column == "model" else "right")
    for name, shape in SHAPES.items():
        size = size_of(shape)
        counts = operators(shape, adapter=False), operators(shape, adapter=True)
        moved = bytes_of_a_step(shape, size, PROMPT + LENGTHS[-1] / 2)
        reached = ASSUMED["bandwidth of an H200, TB/s"] * 1e12 * ASSUMED["share of it reached"]
        weights.add_row(
            name,
            f"{size.total / 1e9:.2f}",
            f"{active(shape, size) / 1e9:.2f}",
            *(f"{value / 1e9:.1f}{_read(size, moved) if what == 'experts' else ''}" for what, value in moved.items()),
            f"{sum(moved.values()) / reached * 1e3:.1f}",
        )
        paper: dict[int, Any] = {}
        found[name] = {"weights": size.total, "operators": counts, "steps": paper}
        for length in LENGTHS:
            step = step_of(shape, size, length, counts)
            paper[length] = vars(step)
            steps.add_row(
                name,
                f"{length:,}",
                f"{counts[0]:,} / {counts[1]:,}",
                *(f"{value:.0f}" for value in (step.floor, step.merged, step.adapter, step.update)),
                " / ".join(f"{value:.0f}" for value in step.total),
            )
    if arguments.json:
        print(json.dumps({"assumed": ASSUMED, "models": found}))
        return 0
    console.print(weights, steps)
    for what, value in ASSUMED.items():
        console.print(f"assumed: {what}: {value:g}", highlight=False)
    console.print("nothing here was measured on a GPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
