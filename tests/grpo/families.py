"""Tiny checkpoints of the families that a policy can be of, saved on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from parts import byte_tokenizer, changed
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3_5MoeConfig,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeForConditionalGeneration,
    Qwen3_5MoeTextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from grpo.config import Config
from grpo.policy import Policy
from grpo.pretrained import load_pretrained

SIZES = {
    "vocab_size": 259,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 2,
}
HYBRID = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}
MOE = SIZES | HYBRID | {"num_hidden_layers": 4, "head_dim": 8}
VISION = {
    "depth": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "out_hidden_size": 32,
    "patch_size": 4,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [],
}
FAMILIES: dict[str, Callable[[], Any]] = {
    "Qwen3.5-MoE with vision": lambda: Qwen3_5MoeForConditionalGeneration(
        Qwen3_5MoeConfig(text_config=MOE, vision_config=VISION)
    ),
    "Qwen3.5-MoE text": lambda: Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**MOE)),
    "Qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True)),
    "Qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES)),
    "Llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
}


def wide() -> Any:
    """Rows and columns in the multiples that bitsandbytes' 4-bit kernel on a CPU asks for."""
    return LlamaForCausalLM(LlamaConfig(**SIZES | {"hidden_size": 64, "intermediate_size": 128}))


def checkpoint(folder: Path, family: str | Callable[[], Any]) -> Any:
    """Save a model of that family with its tokenizer in one folder, as the Hub has it, and return the model."""
    torch.manual_seed(0)
    model = (FAMILIES[family] if isinstance(family, str) else family)().eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(4)  # far enough from a uniform distribution
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return model


def config_for(folder: Path | str, **tables: dict[str, Any]) -> Config:
    return changed(Config(), **{**tables, "policy": {"model": str(folder), **tables.get("policy", {})}})


def policy_of(config: Config, trained: bool = True) -> Policy:
    """The policy as a run would load it; trained = with an adapter that does something."""
    model, tokenizer, origin = load_pretrained(config)
    lora = config.lora if config.lora.enabled else None
    policy = Policy(model, tokenizer, lora, origin=origin)
    if lora is not None and trained:
        generator = torch.Generator().manual_seed(1)
        for name, weight in policy.trainable().items():
            if "lora_B" in name:
                weight.data.normal_(std=0.1, generator=generator)
    policy.model.eval()
    return policy
