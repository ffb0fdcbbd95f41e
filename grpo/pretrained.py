"""A checkpoint, from a folder or the Hub, in the class that its own config names, with its own tokenizer.

Families by config: whatever transformers has a class for, among them Qwen3.5-MoE (text only and with vision), Qwen3,
Qwen2 and Llama. The first architecture of config.json is the class that is loaded; a tensor that the class needs and
the checkpoint lacks is an error, because transformers would fill it with random numbers.
In 8 or 4 bits (bitsandbytes) the linear layers of the text part are quantised; head, vision, embeddings and fused
experts stay as they are.

Left out: code of a checkpoint's own (trust_remote_code), several devices for one model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)
from transformers.utils import cached_file

from grpo.adapter import VISION, Origin
from grpo.config import Config
from render.errors import ConfigError, SetupError
from reward.placing import device_of, dtype_of, packing

# How routed experts are computed, where the class lets it be chosen. The one place where it is set.
EXPERTS = "grouped_mm"


def set_experts(model: Any) -> None:
    """EXPERTS where the class has routed experts and torch can, else the plain loop over experts."""
    for implementation in (EXPERTS, "eager"):
        try:
            model.set_experts_implementation(implementation)
            return
        except (ValueError, ImportError):  # a dense class, or a torch without the kernel
            continue


def load_pretrained(config: Config) -> tuple[Any, Any, Origin]:
    """Model, tokenizer and where they came from.

    Raises SetupError in one line when the checkpoint can neither be found nor downloaded, is of an unknown class, lacks
    tensors or a chat template; ConfigError when device and dtype do not go together.
    """
    settings = config.policy
    device = device_of(settings.device, "policy")
    dtype = dtype_of(settings.dtype, device)
    if dtype is torch.bfloat16 and device.type == "cpu":
        raise ConfigError('[policy] dtype "bfloat16" needs a GPU and there is none; use "auto" or "float32"')
    name, revision = settings.model, settings.revision or None
    if Path(name).exists() and not Path(name, "config.json").exists():
        raise SetupError(f"[policy] model: the folder {name} holds no config.json")
    options: dict[str, Any] = {"revision": revision, "dtype": dtype}
    if settings.quantization != "none":
        whole = ["lm_head", *VISION, *(f"model.{part}" for part in VISION)]
        options |= {
            "quantization_config": packing(settings.quantization, dtype, whole),
            "device_map": {"": str(device)},
        }
    try:
        kind = model_class(AutoConfig.from_pretrained(name, revision=revision))
        tokenizer = load_tokenizer(name, revision)
        model, info = kind.from_pretrained(name, output_loading_info=True, **options)
    except OSError as error:
        first = str(error).strip().splitlines()[0]
        raise SetupError(f"[policy] model: {name} can be neither found nor downloaded: {first}") from None
    except ValueError as error:  # of AutoConfig: a model type that it does not know
        raise SetupError(f"[policy] model: {name}: {str(error).strip().splitlines()[0]}") from error
    lacking = sorted(info["missing_keys"])
    if lacking:
        raise SetupError(
            f"[policy] model: {name} lacks {len(lacking)} tensors of {kind.__name__}, first {lacking[0]}: "
            f"they would be random"
        )
    if not tokenizer.chat_template:
        raise SetupError(f"[policy] model: the tokenizer of {name} has no chat template; take an instruct model")
    if settings.quantization == "none":
        model = model.to(device)
    for module in model.modules():
        # On some CPUs bitsandbytes repacks 4-bit weights at the first pass without gradient, and passes over the packed
        # ones let no gradient through to the layers below, with a warning at most.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    folder = str(Path(name).resolve()) if Path(name).exists() else name
    commits = (_commit(name, revision, file) for file in ("config.json", "tokenizer_config.json"))
    return model, tokenizer, Origin(folder, next(commits), folder, next(commits), settings.quantization)


def model_class(model_config: Any) -> Any:
    """The class of a checkpoint: its config's first architecture, or the causal language model of its type.

    Raises SetupError when transformers has none.
    """
    named = model_config.architectures
    kind = getattr(transformers, named[0], None) if named else MODEL_FOR_CAUSAL_LM_MAPPING.get(type(model_config))
    if kind is None:
        raise SetupError(
            f"[policy] model: transformers {transformers.__version__} has no class for it "
            f"({named[0] if named else model_config.model_type})"
        )
    return kind


def load_tokenizer(name: str, revision: str | None = None) -> Any:
    """The tokenizer of a checkpoint as its tokenizer.json has it.

    AutoTokenizer goes by the model's type: beside a Qwen3.5 config it replaces the saved pre-tokenizer by that family's
    own, without a word. The file wins where the two differ.
    """
    tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
    file = cached_file(name, "tokenizer.json", revision=revision, _raise_exceptions_for_missing_entries=False)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if file is None or backend is None:
        return tokenizer
    saved, used = (json.loads(text) for text in (Tokenizer.from_file(file).to_str(), backend.to_str()))
    if any(saved[part] != used[part] for part in ("normalizer", "pre_tokenizer")):
        return PreTrainedTokenizerFast.from_pretrained(name, revision=revision)
    return tokenizer


def _commit(name: str, revision: str | None, file: str) -> str:
    """The commit that a file of the Hub was taken from, read off the local cache; empty for a folder."""
    from huggingface_hub import try_to_load_from_cache

    if Path(name).exists():
        return ""
    found = try_to_load_from_cache(name, file, revision=revision)
    return Path(found).parent.name if isinstance(found, str) else ""
