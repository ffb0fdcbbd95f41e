"""The LoRA adapter (Hu et al. 2021): where it sits, how it is kept, and what it is checked against when it comes back.

    adapter/
        adapter_model.safetensors, adapter_config.json   peft's format: peft alone loads it, into the base's own class
        policy.json                                      base, class, commits, adapted layers and their share
        README.md                                        the model card: how to load it, and into which class

No task type is written, because peft then records the base's class (auto_mapping) and AutoPeftModel loads that very
class. With a task type it would take AutoModelForCausalLM, which builds the text-only class of a checkpoint with
vision: its layers have other names, and every tensor of the adapter would be dropped.

Left out: adapters other than LoRA, adapters on the head or on embeddings, several adapters at once.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from safetensors.torch import load_file
from torch import nn

from grpo.config import LoraSettings
from render.errors import ConfigError, UserError

if TYPE_CHECKING:
    from grpo.policy import Policy

VISION = ("visual", "vision_tower", "vision_model", "multi_modal_projector")


@dataclass(frozen=True)
class Origin:
    """Where a policy came from. model, tokenizer: a folder or a name on the Hub. Revisions: the commits that were
    resolved, empty where there are none (a folder). quantization: of the frozen weights."""

    model: str = ""
    revision: str = ""
    tokenizer: str = ""
    tokenizer_revision: str = ""
    quantization: str = "none"


# --- where it sits ----------------------------------------------------------------------------------------------


def is_vision(name: str) -> bool:
    """Whether a layer or a weight of that name belongs to the vision part, which is neither trained nor run."""
    return any(part in name for part in VISION)


def linear_layers(model: Any) -> list[str]:
    """Full names of the linear layers of the text part without the head. Routers and fused experts are parameters of
    their own, not linear layers."""
    head = model.get_output_embeddings()
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head and not is_vision(name)
    ]


def lora_targets(model: Any, targets: tuple[str, ...] | str) -> list[str]:
    """Full names of the layers to adapt. "all-linear": all of `linear_layers`. A list matches the last part of a name.

    Raises ConfigError for a name that matches no linear layer, and for a model that has none.
    """
    linear = linear_layers(model)
    if isinstance(targets, str):
        if targets != "all-linear":
            raise ConfigError(f'[lora] targets is "all-linear" or a list of layer names, not "{targets}"')
        if not linear:
            raise ConfigError(f'[lora] targets: "all-linear" matches no layer of {type(model).__name__}')
        return linear
    for target in targets:
        if not any(name.split(".")[-1] == target for name in linear):
            ends = sorted({name.split(".")[-1] for name in linear})
            raise ConfigError(f"[lora] targets: no linear layer is called {target}; there are {', '.join(ends)}")
    return [name for name in linear if name.split(".")[-1] in targets]


def expert_targets(model: Any) -> list[str]:
    """Full names of the fused weights of the routed experts, [experts, out, in] each.

    Raises ConfigError when the model has none.
    """
    found = [
        f"{name}.{parameter}"
        for name, module in model.named_modules()
        if name.split(".")[-1] == "experts" and not is_vision(name)
        for parameter, weight in module.named_parameters(recurse=False)
        if weight.dim() == 3
    ]
    if not found:
        raise ConfigError(f"[lora] experts = true: {type(model).__name__} has no routed experts; leave it out")
    return found


def add_adapter(model: Any, settings: LoraSettings, origin: Origin | None = None) -> tuple[Any, tuple[str, ...]]:
    """Wrap the model in an adapter and return it with the names of the adapted layers.

    The matrices are drawn under a fixed seed, so that the same config starts from the same adapter.
    """
    from peft import LoraConfig, get_peft_model

    names = lora_targets(model, settings.targets)
    experts = expert_targets(model) if settings.experts else []
    state = torch.get_rng_state()
    torch.manual_seed(0)
    wrapped = get_peft_model(
        model,
        LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=names,
            target_parameters=experts or None,
            bias="none",
        ),
    )
    torch.set_rng_state(state)
    if origin is not None:
        saved_as = wrapped.peft_config["default"]
        saved_as.base_model_name_or_path = origin.model or None
        saved_as.revision = origin.revision or None
    asked, adapted = [*names, *experts], _adapted(wrapped)
    if adapted != set(asked):
        odd = sorted(adapted ^ set(asked))
        raise ConfigError(f"[lora] targets: the adapter does not sit where it was asked to: {', '.join(odd[:5])}")
    return wrapped, tuple(asked)


def _adapted(wrapped: Any) -> set[str]:
    """Names of the layers and parameters of the model under the adapter that have a trained matrix A."""
    found = set()
    for name, module in wrapped.named_modules():
        matrices = getattr(module, "lora_A", None)
        if matrices is not None and any(weight.requires_grad for weight in matrices.parameters()):
            layer = name.removeprefix("base_model.model.").replace(".base_layer", "")
            parameter = getattr(module, "parameter_name", None)
            found.add(f"{layer}.{parameter}" if parameter else layer)
    return found


def kinds(names: Sequence[str]) -> str:
    """Layer names without what tells one layer from the next, each with its count."""
    counted = Counter(re.sub(r"^.*?\.\d+\.", "", name) for name in names)
    return ", ".join(f"{kind} {count}" for kind, count in counted.items())


# --- how it is kept ---------------------------------------------------------------------------------------------


def record(policy: Policy) -> dict[str, Any]:
    """What the policy is: base, class, commits, how much of it is trained, and every adapted layer by name."""
    trained, total = policy.counts()
    origin = policy.origin
    return {
        "base": origin.model,
        "class": policy.base_class,
        "revision": origin.revision,
        "tokenizer": origin.tokenizer,
        "tokenizer_revision": origin.tokenizer_revision,
        "quantization": origin.quantization,
        "weights": total,
        "trained": trained,
        "share": trained / total,
        "layers": len(policy.adapted),
        "adapted": list(policy.adapted),
    }


def save(folder: Path, policy: Policy) -> None:
    """Write the adapter with its record and its model card."""
    # Embeddings are never trained. Asked to find out, peft would look for the base's config on the Hub at every save.
    policy.model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "policy.json").write_text(json.dumps(record(policy), indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(policy), encoding="utf-8")


def load(folder: Path, policy: Policy) -> None:
    """Put a saved adapter's weights into the policy's own.

    Raises UserError in one line when it belongs to another class, or when a tensor is missing, unexpected or of
    another shape: none is ever passed over.
    """
    from peft import get_peft_model_state_dict
    from peft.utils import set_peft_model_state_dict

    if not policy.has_adapter:
        raise UserError(f"{folder}: an adapter, but this config trains every weight ([lora] enabled = false)")
    config, tensors = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    for file in (config, tensors):
        if not file.is_file():
            raise UserError(f"{folder}: not an adapter (it holds no {file.name})")
    described = json.loads(config.read_text(encoding="utf-8"))
    written = described.get("auto_mapping") or {}
    trained_on = written.get("base_model_class", policy.base_class)
    if trained_on != policy.base_class:
        raise UserError(f"{folder}: the adapter was trained on {trained_on}, the policy is a {policy.base_class}")
    alpha = policy.model.peft_config["default"].lora_alpha
    if described["lora_alpha"] != alpha:
        raise UserError(f"{folder}: the adapter has alpha {described['lora_alpha']}, [lora] alpha says {alpha}")
    saved, expected = load_file(tensors), get_peft_model_state_dict(policy.model, save_embedding_layers=False)
    for what, names in (
        ("lacks", sorted(set(expected) - set(saved))),
        ("holds, and the policy has no place for,", sorted(set(saved) - set(expected))),
    ):
        if names:
            raise UserError(f"{folder}: the adapter does not fit: it {what} {len(names)} tensors, first {names[0]}")
    for name, tensor in saved.items():
        if tensor.shape != expected[name].shape:
            raise UserError(
                f"{folder}: the adapter does not fit: {name} is {tuple(tensor.shape)} there and "
                f"{tuple(expected[name].shape)} here; [lora] rank must be the one it was trained with"
            )
    set_peft_model_state_dict(policy.model, saved)


CARD = """\
---
base_model: {model}
library_name: peft
tags: [lora, grpo, p5.brush]
---
# An adapter that writes p5.brush sketches

LoRA of rank {rank}, alpha {alpha} on {layers} layers ({trained:,} weights, {share:.2%} of the model), trained by GRPO.

| | |
|---|---|
| base | {model} |
| revision | {revision} |
| class | `{kind}` |
| adapted | {adapted} |
| base while training | {precision} |

## How to load it

In this folder:

```python
import torch
from peft import PeftModel
from transformers import {tokenizer_kind}, {kind}
tokenizer = {tokenizer_kind}.from_pretrained({tokenizer!r}{tokenizer_pin})
base = {kind}.from_pretrained({model!r}{pin}, dtype={dtype})
model = PeftModel.from_pretrained(base, ".")
```

## The class matters

{trap}
"""

TRAP = """\
This checkpoint has a vision part, and `AutoModelForCausalLM` loads its text-only class without a word. The layers of
that class have other names (`model.layers`, not `model.language_model.layers`), so peft finds a place for none of this
adapter's tensors, warns at most, and what runs is the base as it was before training. Load the class named above, or
let `peft.AutoPeftModel.from_pretrained(".")` read it from `adapter_config.json`."""

NO_TRAP = """\
The names of the adapter's tensors are those of the class named above. Another class of the same checkpoint may name its
layers otherwise; peft then drops the tensors that it finds no place for and warns at most.
`peft.AutoPeftModel.from_pretrained(".")` reads the class from `adapter_config.json`."""


def card(policy: Policy) -> str:
    """The model card of the policy's adapter, as Markdown."""
    settings, origin = policy.model.peft_config["default"], policy.origin
    trained, total = policy.counts()
    tokenizer_kind = type(policy.tokenizer).__name__
    if not hasattr(transformers, tokenizer_kind):
        tokenizer_kind = "AutoTokenizer"
    precision = str(policy.dtype).removeprefix("torch.")
    if origin.quantization != "none":
        precision = f"{origin.quantization} (bitsandbytes), {precision} elsewhere"
    return CARD.format(
        model=origin.model,
        rank=settings.r,
        alpha=settings.lora_alpha,
        layers=len(policy.adapted),
        trained=trained,
        share=trained / total,
        revision=origin.revision or "unknown (a folder)",
        kind=policy.base_class,
        adapted=kinds(policy.adapted),
        precision=precision,
        tokenizer=origin.tokenizer,
        tokenizer_kind=tokenizer_kind,
        tokenizer_pin=_pin(origin.tokenizer_revision),
        pin=_pin(origin.revision),
        dtype=policy.dtype,
        trap=TRAP if policy.base_class.endswith("ForConditionalGeneration") else NO_TRAP,
    )


def _pin(revision: str) -> str:
    return f", revision={revision!r}" if revision else ""
