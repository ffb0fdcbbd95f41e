"""A tiny Qwen2-VL with HPSv3's head, its weights by formula, in the files that the real one comes in: HPSv3.safetensors
under the checkpoint's own (older) names, config.json in the flat form of the Hub, and a byte-level tokenizer of the
same class with the same special tokens."""

from __future__ import annotations

import dataclasses
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from reward.instruction import Instruction
from reward.settings import Hpsv3Settings

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "hpsv3_golden.json").read_text())
SPECIALS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
# The words of the tests; the real instruction is not ours to copy.
WORDS = Instruction("Judge {{fairly}}: {text_prompt}.\n", " <|Reward|>\n")


@dataclass(frozen=True)
class Size:
    """The widths of a tiny model; those of the golden file by default, but for the number of tokens."""

    rows: int = 256 + len(SPECIALS) + 1
    hidden: int = 64
    inner: int = 128
    layers: int = 3
    heads: int = 4
    key_heads: int = 2
    vision: int = 32
    vision_depth: int = 3
    vision_heads: int = 2


FULL = Size(rows=151658)


def shapes(size: Size) -> dict[str, list[int]]:
    """Name -> shape of every tensor of the checkpoint."""
    hidden, vision, keys = size.hidden, size.vision, size.hidden * size.key_heads // size.heads
    found = {"visual.patch_embed.proj.weight": [vision, 3, 2, 14, 14]}

    def layer(name: str, width: int, inputs: int | None = None, bias: bool = True) -> None:
        found[f"{name}.weight"] = [width] if inputs is None else [width, inputs]
        if bias:
            found[f"{name}.bias"] = [width]

    for index in range(size.vision_depth):
        block = f"visual.blocks.{index}"
        layer(f"{block}.norm1", vision)
        layer(f"{block}.norm2", vision)
        layer(f"{block}.attn.qkv", 3 * vision, vision)
        layer(f"{block}.attn.proj", vision, vision)
        layer(f"{block}.mlp.fc1", 4 * vision, vision)
        layer(f"{block}.mlp.fc2", vision, 4 * vision)
    layer("visual.merger.ln_q", vision)
    layer("visual.merger.mlp.0", 4 * vision, 4 * vision)
    layer("visual.merger.mlp.2", hidden, 4 * vision)
    layer("model.embed_tokens", size.rows, hidden, bias=False)
    for index in range(size.layers):
        block = f"model.layers.{index}"
        layer(f"{block}.self_attn.q_proj", hidden, hidden)
        layer(f"{block}.self_attn.k_proj", keys, hidden)
        layer(f"{block}.self_attn.v_proj", keys, hidden)
        layer(f"{block}.self_attn.o_proj", hidden, hidden, bias=False)
        layer(f"{block}.mlp.gate_proj", size.inner, hidden, bias=False)
        layer(f"{block}.mlp.up_proj", size.inner, hidden, bias=False)
        layer(f"{block}.mlp.down_proj", hidden, size.inner, bias=False)
        layer(f"{block}.input_layernorm", hidden, bias=False)
        layer(f"{block}.post_attention_layernorm", hidden, bias=False)
    layer("model.norm", hidden, bias=False)
    layer("lm_head", size.rows, hidden, bias=False)
    layer("rm_head.0", 1024, hidden)
    layer("rm_head.3", 16, 1024)
    layer("rm_head.5", 2, 16)
    return found


def tensor(name: str, shape: list[int]) -> torch.Tensor:
    """The formula of the golden file."""
    x = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    if name.endswith("bias"):
        x = 0.05 * x
    elif len(shape) == 1:
        x = 1 + 0.1 * x
    elif "embed_tokens" not in name:
        x = x * (1.6 if name.startswith("rm_head") else 1.0) / np.sqrt(np.prod(shape[1:]))
    return torch.from_numpy(x.astype(np.float32))


def config(size: Size) -> dict[str, Any]:
    """config.json as the Hub has it for Qwen2-VL: flat, with the vocabulary before <|Reward|> was added."""
    image = size.rows - 3
    return {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "model_type": "qwen2_vl",
        "attention_dropout": 0.0,
        "bos_token_id": image - 12,
        "eos_token_id": image - 10,
        "vision_start_token_id": image - 3,
        "vision_end_token_id": image - 2,
        "vision_token_id": image - 1,
        "image_token_id": image,
        "video_token_id": image + 1,
        "hidden_act": "silu",
        "hidden_size": size.hidden,
        "initializer_range": 0.02,
        "intermediate_size": size.inner,
        "max_position_embeddings": 32768,
        "max_window_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_hidden_layers": size.layers,
        "num_key_value_heads": size.key_heads,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "sliding_window": 32768,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.41.2",
        "use_cache": True,
        "use_sliding_window": False,
        "vision_config": {
            "depth": size.vision_depth,
            "embed_dim": size.vision,
            "mlp_ratio": 4,
            "num_heads": size.vision_heads,
            "in_chans": 3,
            "hidden_size": size.hidden,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "spatial_patch_size": 14,
            "temporal_patch_size": 2,
        },
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        "vocab_size": size.rows + 406,
    }


def save_tokenizer(folder: Path, size: Size) -> None:
    """A byte-level tokenizer of `size.rows` - 1 tokens: bytes, fillers that no text meets, Qwen2-VL's special ones."""
    plain = size.rows - 1 - len(SPECIALS)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*alphabet, *(f"filler {index}" for index in range(plain - len(alphabet)))]
    tokenizer = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=[]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(special, normalized=False, special=True) for special in SPECIALS])
    tokenizer.save(str(folder / "tokenizer.json"))
    save_tokenizer_config(folder, plain)


def save_real_tokenizer(folder: Path, vocabulary: Path) -> None:
    """The vocabulary of Qwen's later tokenizers, cut to the special tokens of Qwen2-VL."""
    described = json.loads(vocabulary.read_text(encoding="utf-8"))
    described["added_tokens"] = described["added_tokens"][: len(SPECIALS)]
    assert [token["content"] for token in described["added_tokens"]] == SPECIALS
    (folder / "tokenizer.json").write_text(json.dumps(described), encoding="utf-8")
    save_tokenizer_config(folder, described["added_tokens"][0]["id"])


def save_tokenizer_config(folder: Path, first: int) -> None:
    """tokenizer_config.json as the Hub has it for Qwen2-VL; the special tokens begin at id `first`."""
    token = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    described = {
        "add_prefix_space": False,
        "added_tokens_decoder": {str(first + i): {"content": name, **token} for i, name in enumerate(SPECIALS)},
        "additional_special_tokens": SPECIALS[1:],
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(described))


Change = Callable[[dict[str, torch.Tensor]], None]


def save(
    folder: Path, size: Size = Size(), change: Change = lambda state: None, tokenizer: bool = True
) -> Hpsv3Settings:
    """Write weights, config and tokenizer into the folder; the settings that name them. change: spoils the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor(name, shape) for name, shape in shapes(size).items()}
    change(state)
    save_file(state, folder / "HPSv3.safetensors")
    (folder / "config.json").write_text(json.dumps(config(size)))
    if tokenizer:
        save_tokenizer(folder, size)
    return Hpsv3Settings(
        weights=str(folder / "HPSv3.safetensors"), base=str(folder), device="cpu", dtype="float32", batch_size=8
    )


def changed(settings: Hpsv3Settings, **values: Any) -> Hpsv3Settings:
    return dataclasses.replace(settings, **values)


def picture(index: int, height: int, width: int) -> np.ndarray:
    """(height, width, 3) uint8: the pictures of the golden file, of any size and number."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    random = np.random.RandomState(50 + index)
    channels = [
        127
        + 120
        * np.sin(x / random.uniform(9, 60) + random.uniform(0, 6))
        * np.cos(y / random.uniform(9, 60) + random.uniform(0, 6))
        for _ in range(3)
    ]
    return np.clip(np.stack(channels, 2), 0, 255).astype(np.uint8)


def png(pixels: np.ndarray | Image.Image) -> bytes:
    buffer = io.BytesIO()
    (pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)).save(buffer, "PNG")
    return buffer.getvalue()


def golden_png(index: int) -> bytes:
    return png(picture(index, *((448, 448), (360, 640), (300, 200))[index]))
