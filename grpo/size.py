"""How many weights a policy has, counted on torch's meta device: from config.json alone, nothing is loaded.

The model is built in its own class without memory for its weights; the adapter is counted from the shapes of the layers
that `adapter.lora_targets` names, rank * (inputs + outputs) each, as `peft` makes it.
Left out: bytes. What a weight takes depends on dtype, quantization and optimizer, which is the memory plan's business.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grpo.config import Config, LoraSettings

# Checkpoints whose shapes are the defaults of their class, so that a plan can be made before anything is downloaded.
DEFAULTS = {"Qwen/Qwen3.5-35B-A3B": ("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration")}


def weights_of(config: Config) -> dict[str, int] | None:
    """Weights of a config's policy by part, see `count`; None for the small policy and where its config is unknown.

    Looks into a folder or the local Hub cache and asks nobody.
    """
    shapes = model_config(config)
    return None if shapes is None else count(shapes, config.lora if config.lora.enabled else None)


def model_config(config: Config) -> Any | None:
    """The policy's own config (a transformers config), or None for the small policy and where it is unknown."""
    from transformers import AutoConfig

    name = config.policy.model
    if name == "small" or (Path(name).is_dir() and not (Path(name) / "config.json").is_file()):
        return None
    try:
        return AutoConfig.from_pretrained(name, revision=config.policy.revision or None, local_files_only=True)
    except OSError:
        if name not in DEFAULTS:
            return None
    kind, architecture = DEFAULTS[name]
    return AutoConfig.for_model(kind, architectures=[architecture])


def count(shapes: Any, lora: LoraSettings | None) -> dict[str, int]:
    """Weights by part of the model that a transformers config describes.

    total; vision; text = total - vision; of the text: experts (fused routed experts), linear (linear layers that
    bitsandbytes would quantise and an adapter can sit on), embedding, head (0 where it is tied to the embedding).
    adapter: trained matrices, 0 without lora; adapted: weights of the layers under them; layers: how many those are.
    Every key is there for every model.
    """
    import torch

    from grpo.adapter import expert_targets, is_vision, linear_layers, lora_targets
    from grpo.pretrained import model_class

    with torch.device("meta"):
        model = model_class(shapes)._from_config(shapes)
    sizes = {name: weight.numel() for name, weight in model.named_parameters()}
    vision = sum(size for name, size in sizes.items() if is_vision(name))
    total = sum(sizes.values())
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    found = {
        "total": total,
        "vision": vision,
        "text": total - vision,
        "experts": sum(size for name, size in sizes.items() if ".experts." in name and not is_vision(name)),
        "linear": sum(model.get_submodule(name).weight.numel() for name in linear_layers(model)),
        "embedding": embedding.numel(),
        "head": 0 if head is embedding else head.numel(),
    }
    adapter = adapted = layers = 0
    if lora is not None:
        names = lora_targets(model, lora.targets)
        shaped = [(1, *model.get_submodule(name).weight.shape) for name in names]
        if lora.experts:
            shaped += [tuple(model.get_parameter(name).shape) for name in expert_targets(model)]
        for copies, outputs, inputs in shaped:
            adapter += copies * lora.rank * (outputs + inputs)
            adapted += copies * outputs * inputs
        layers = len(shaped)
    return found | {"adapter": adapter, "adapted": adapted, "layers": layers}
