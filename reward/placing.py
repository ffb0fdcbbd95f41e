"""Where a model lives and in which numbers: the same rules for policy, HPSv3 and a judge in this process.

Imports torch: only modules that hold a model may import it.
"""

from __future__ import annotations

import torch
from transformers import BitsAndBytesConfig

from render.errors import ConfigError


def device_of(name: str, table: str) -> torch.device:
    """auto -> the GPU where there is one. table: of the setting, for the message.

    Raises ConfigError when a GPU is asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f'[{table}] device is "cuda", but torch sees no GPU on this machine; use "auto" or "cpu"')
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def dtype_of(name: str, device: torch.device) -> torch.dtype:
    """auto -> bfloat16 on a GPU, float32 on a CPU."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def packing(bits: str, dtype: torch.dtype, whole: list[str]) -> BitsAndBytesConfig | None:
    """How bitsandbytes packs the linear layers ("8bit", "4bit" as NF4) outside the modules `whole`; None for "none"."""
    if bits == "none":
        return None
    return BitsAndBytesConfig(
        load_in_8bit=bits == "8bit",
        load_in_4bit=bits == "4bit",
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=dtype,
        llm_int8_skip_modules=whole,
    )
