"""The memory plan of a run: what lives on the policy's device, in gigabytes (1e9 bytes), from the config alone.

Weights are counted on the meta device (grpo.size), the rest follows from shapes: keys and values of all rows sampled at
once, recurrent states, activations that gradient checkpointing keeps and recomputes, the chunk of logits. What is not
known before a GPU has been seen (context, fragmentation) is one assumed number. An estimate, to see whether a plan can
fit at all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from grpo.config import Config
from reward import hps_files

PROMPT = 1024  # tokens of system prompt and subject, at most
OVERHEAD_GB = 4.0  # assumed: CUDA context, fragmentation, kernels' own buffers
PACKED = {"8bit": 1.0, "4bit": 0.56}  # bytes a weight
# float32 numbers that one layer keeps for each token while it is recomputed, counted in widths of its parts: two for
# every linear layer's input and output, and what the recurrent rule makes of keys and values.
RESIDUAL, INNER, RULE = 8, 6, 24
CHUNKS = 4  # copies of [chunk, V] in float32 that the log-probabilities hold at most (tests/grpo/test_logprobs.py)


def plan(config: Config) -> dict[str, float] | None:
    """Gigabytes by part; None for the small policy beside stand-ins, and where nothing is known of the policy."""
    on_gpu = config.policy.device != "cpu"
    parts = {} if config.policy.model == "small" else _policy(config, on_gpu)
    if config.reward.task != "fills":
        if config.reward.preference == "hpsv3" and (config.reward.hpsv3.device == "cpu") != on_gpu:
            parts["HPSv3"] = hps_files.memory_gb(config.reward.hpsv3, on_gpu)
        parts |= _judge(config, on_gpu)
    if parts and on_gpu:
        parts["context, fragmentation"] = OVERHEAD_GB
    return parts or None


def _policy(config: Config, on_gpu: bool) -> dict[str, float]:
    from grpo.size import model_config, weights_of

    width = 2.0 if on_gpu and config.policy.dtype != "float32" else 4.0
    shapes, counts = model_config(config), weights_of(config)
    if shapes is None or counts is None:
        size = billions(config.policy.model)
        return {} if size is None else {"policy (by its name)": size * width}
    packed = counts["linear"] * PACKED.get(config.policy.quantization, width)
    trained = counts["adapter"] if config.lora.enabled else counts["text"]
    # Gradient and two moments; the adapter's own weights are float32 too.
    moments = 2.0 if config.train.optimizer == "adamw8bit" else 8.0
    text = shapes.get_text_config()
    return {
        "policy": ((counts["total"] - counts["linear"]) * width + packed) / 1e9,
        "adapter and optimizer": trained * (4.0 + moments + (4.0 if config.lora.enabled else 0.0)) / 1e9,
        **{name: size / 1e9 for name, size in _sampling(config, text, width).items()},
        **{name: size / 1e9 for name, size in _training(config, text, width).items()},
    }


def _sampling(config: Config, text: Any, width: float) -> dict[str, float]:
    """Bytes of keys and values and of recurrent states, of all rows that are sampled at once."""
    rows = config.sample.rows_at_once or config.rollouts_per_step
    return {name: rows * size for name, size in _row(text, PROMPT + config.sample.max_completion_length, width).items()}


def _row(text: Any, tokens: int, width: float) -> dict[str, float]:
    """The same of one row of so many tokens."""
    linear, full = layers(text)
    found = {"keys and values": tokens * full * 2 * text.num_key_value_heads * _head(text) * width}
    if linear:
        state = text.linear_num_value_heads * text.linear_key_head_dim * text.linear_value_head_dim
        found["recurrent states"] = linear * state * 4.0
    return found


def rows_that_fit(text: Any, tokens: int, width: float, free: float) -> int:
    """How many rows of so many tokens, prompt and completion, can be sampled at once in `free` bytes; at least 1.

    text: the config of the model's text part. width: bytes of a number in the cache, which grows by copying: for a
    moment one layer is there twice.
    """
    return max(1, int(free / (sum(_row(text, tokens, width).values()) * (1 + 1 / text.num_hidden_layers))))


def _training(config: Config, text: Any, width: float) -> dict[str, float]:
    """Bytes that one micro-batch of the longest completions keeps at its peak."""
    tokens = max(1, config.train.micro_batch_size) * (PROMPT + config.sample.max_completion_length)
    linear, full = layers(text)
    inner = getattr(text, "intermediate_size", 0) or 0
    if getattr(text, "num_experts", 0):
        inner = text.num_experts_per_tok * text.moe_intermediate_size + text.shared_expert_intermediate_size
    rule = RULE * text.linear_num_value_heads * text.linear_value_head_dim if linear else 0
    layer = tokens * (RESIDUAL * 2 * text.hidden_size + INNER * inner + rule) * 4.0
    kept = tokens * (linear + full) * text.hidden_size * width
    if not config.train.gradient_checkpointing:
        kept = layer * (linear + full)
    return {
        "activations": kept + layer,
        "logits": CHUNKS * min(config.train.logprob_chunk, tokens) * text.vocab_size * 4.0
        + config.train.logprob_keep_mb * 2**20,
    }


def _judge(config: Config, on_gpu: bool) -> dict[str, float]:
    vlm = config.reward.vlm
    if config.reward.judge != "vlm" or vlm.backend != "transformers" or (vlm.device == "cpu") == on_gpu:
        return {}
    size = billions(vlm.model)
    return {} if size is None else {"judge (by its name)": size * PACKED.get(vlm.quantization, 2.0 if on_gpu else 4.0)}


def layers(text: Any) -> tuple[int, int]:
    """How many layers are recurrent and how many have full attention."""
    kinds = getattr(text, "layer_types", None) or ["full_attention"] * text.num_hidden_layers
    linear = sum(kind == "linear_attention" for kind in kinds)
    return linear, len(kinds) - linear


def _head(text: Any) -> int:
    return int(getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads)


def billions(model: str) -> float | None:
    """Billions of weights that a model's name speaks of: 35 of "Qwen3.5-35B-A3B" (A3B are the active ones)."""
    match = re.search(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)B(?![A-Za-z])", Path(model).name)
    return float(match[1]) if match else None


def remedy(config: Config, parts: dict[str, float]) -> str:
    """The settings that would make the largest difference, in words."""
    found = []
    if config.sample.rows_at_once != 1 and parts.get("keys and values", 0) + parts.get("recurrent states", 0) > 1:
        found.append("[sample] rows_at_once")
    if config.train.micro_batch_size > 1:
        found.append("[train] micro_batch_size")
    if not config.train.gradient_checkpointing and parts.get("activations", 0) > 1:
        found.append("[train] gradient_checkpointing = true")
    if "HPSv3" in parts and config.reward.hpsv3.quantization == "none":
        found.append('[reward.hpsv3] quantization = "8bit"')
    if "judge (by its name)" in parts:
        found.append('[reward.vlm] backend = "server" on another machine')
    found.append("[policy] model")
    return "change " + " or ".join(found)
