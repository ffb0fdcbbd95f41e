"""HPSv3: Qwen2-VL with a head of three layers, fed with a picture and a text, answering mu and log sigma.

What decides a score, and is kept to the byte: the system turn and the chat format of Qwen2-VL, the instruction text,
the picture resized once with PIL's bicubic filter to about 200704 pixels, and plain positions 0, 1, 2... on all three
axes of the rotary embedding. The released weights were trained with those and not with the two-dimensional positions
that Qwen2-VL itself uses: whoever hands the model its own positions gets other scores. The head reads the last hidden
state, after the final norm, at the token <|Reward|>, and works in float32 whatever the body works in.

Source: HPSv3 (arXiv 2508.03789) and its published package 1.0.0, re-implemented. Different on purpose: names of special
tokens are taken out of the user's text, and transparent pictures are laid on white.
Left out: training, videos, several pictures in one text.

Legend: _B paintings, _L tokens, _P patches, _H width of the hidden state.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import AutoTokenizer, Qwen2VLConfig, Qwen2VLModel

from render.errors import SetupError
from reward.hps_files import base_folder, fingerprint, weights_file
from reward.instruction import Instruction
from reward.placing import device_of, dtype_of, packing
from reward.qwen_image import on_white, patches, smart_resize
from reward.settings import Hpsv3Settings

REWARD, IMAGE = "<|Reward|>", "<|image_pad|>"
BEFORE = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n<|vision_start|>"
    f"{IMAGE}<|vision_end|>"
)
AFTER = "<|im_end|>\n<|im_start|>assistant\n"
PATCH, MERGE, PIXELS = 14, 2, 256 * 28 * 28
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of CLIP
EMBEDDING = "model.embed_tokens.weight"
HEAD = tuple(f"rm_head.{layer}.{kind}" for layer in (0, 3, 5) for kind in ("weight", "bias"))
BESIDE_THE_BODY = {"lm_head.weight", *HEAD}


@dataclass(frozen=True)
class Encoded:
    """One painting and its text: token ids, pixel_values (_P, 1176) float32, grid of patches (1, height, width)."""

    ids: list[int]
    pixel_values: NDArray[np.float32]
    grid: tuple[int, int, int]


class Hpsv3:
    """The scorer, on its device. Several threads may call `measure`.

    identity: names weights, base, numbers and device; answers of equal identity may be compared and kept.
    batch_size: paintings in one forward pass; it falls by itself where the memory is too small.
    Raises SetupError where a piece is missing or is not what it should be, ConfigError where a setting is wrong.
    """

    def __init__(self, settings: Hpsv3Settings, instruction: Instruction) -> None:
        self.instruction = instruction
        self.batch_size = settings.batch_size
        self.device = device_of(settings.device, "reward.hpsv3")
        self.dtype = dtype_of(settings.dtype, self.device)
        weights, base = weights_file(settings), base_folder(settings)
        self.tokenizer = AutoTokenizer.from_pretrained(base)
        self.tokenizer.add_tokens([REWARD], special_tokens=True)
        self.reward_id, self.image_id = self.tokenizer.convert_tokens_to_ids([REWARD, IMAGE])
        self.specials = sorted(self.tokenizer.get_added_vocab(), key=len, reverse=True)
        self.head = _load_head(weights, rows=len(self.tokenizer)).to(self.device).eval()
        self.body = _load_body(
            weights, base, len(self.tokenizer), settings.quantization, self.dtype, self.device
        ).eval()
        if self.body.config.image_token_id != self.image_id or self.reward_id != len(self.tokenizer) - 1:
            raise SetupError(f"{base}: the tokenizer gives {IMAGE} or {REWARD} another id than the weights know")
        described = [fingerprint(weights), fingerprint(base / "config.json"), fingerprint(base / "tokenizer.json")]
        described += [settings.quantization, str(self.dtype), self.device.type, transformers.__version__]
        self.identity = hashlib.sha256(json.dumps(described).encode()).hexdigest()
        self.lock = threading.Lock()

    def cleaned(self, text: str) -> str:
        """The text without the names of special tokens: all that the tokenizer lists as added (<|im_start|>,
        <|image_pad|>, <|Reward|> and their like). As plain text they would move the place where the score is read, or
        ask for a second picture. Nothing else is changed: braces, quotes, blanks and any script stay."""
        before = None
        while text != before:  # taking one out may join its neighbours to another
            before = text
            for special in self.specials:
                text = text.replace(special, "")
        return text

    def encode(self, png: bytes, text: str) -> Encoded:
        """Picture and text as the model reads them."""
        picture = on_white(png)
        size = smart_resize(picture.height, picture.width, PATCH * MERGE, PIXELS, PIXELS)
        pixel_values, grid = patches(picture, PATCH, MERGE, MEAN, STD, size)
        prompt = BEFORE + self.instruction.fill(self.cleaned(text)) + AFTER
        ids: list[int] = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        at = ids.index(self.image_id)
        tokens = grid[1] * grid[2] // MERGE**2
        return Encoded(ids[:at] + [self.image_id] * tokens + ids[at + 1 :], pixel_values, grid)

    def measure(self, pngs: Sequence[bytes], text: str) -> list[tuple[float, float]]:
        """(mu, log sigma) of each painting as an answer to the text.

        Raises SetupError where the memory does not hold a single painting beside the model.
        """
        answers: list[tuple[float, float]] = []
        while len(answers) < len(pngs):
            with self.lock:
                chosen = pngs[len(answers) : len(answers) + self.batch_size]
                found = self._tried(self.batch([self.encode(png, text) for png in chosen]))
                if found is None:
                    self._shrink(len(chosen))
                else:
                    answers += [(mu, log_sigma) for mu, log_sigma in found]
        return answers

    def batch(self, rows: Sequence[Encoded]) -> dict[str, Tensor]:
        """Tensors for `forward`, padded on the right: input_ids, attention_mask (_B, _L), position_ids (3, _B, _L),
        pixel_values (_P, 1176) of all rows and image_grid_thw (_B, 3)."""
        lengths = [len(row.ids) for row in rows]
        input_ids = torch.zeros(len(rows), max(lengths), dtype=torch.long)
        mask = torch.zeros_like(input_ids)
        for index, row in enumerate(rows):
            input_ids[index, : len(row.ids)] = torch.tensor(row.ids)
            mask[index, : len(row.ids)] = 1
        positions = torch.arange(max(lengths)).expand(3, len(rows), -1)
        return {
            "input_ids": input_ids,
            "attention_mask": mask,
            "position_ids": positions,
            "pixel_values": torch.from_numpy(np.concatenate([row.pixel_values for row in rows])),
            "image_grid_thw": torch.tensor([row.grid for row in rows]),
        }

    @torch.inference_mode()
    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """(_B, 2) float32: mu and log sigma of each row of `batch`, which holds <|Reward|> once in every row."""
        inputs = {name: tensor.to(self.device) for name, tensor in batch.items()}
        inputs["pixel_values"] = inputs["pixel_values"].to(self.dtype)
        hidden_BLH = self.body(**inputs, use_cache=False).last_hidden_state
        at_reward_BL = inputs["input_ids"] == self.reward_id
        assert bool((at_reward_BL.sum(dim=1) == 1).all()), f"a row needs {REWARD} once"
        answers: Tensor = self.head(hidden_BLH[at_reward_BL].float())
        return answers

    def _tried(self, batch: dict[str, Tensor]) -> list[list[float]] | None:
        """What `forward` answers, or None where the memory of the device was too small."""
        with contextlib.suppress(torch.OutOfMemoryError):
            answers: list[list[float]] = self.forward(batch).tolist()
            return answers
        return None

    def _shrink(self, tried: int) -> None:
        """Halve the batch after `tried` paintings were too many. Raises SetupError where it was one."""
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if tried == 1:
            raise SetupError(
                f"HPSv3 has no room on {self.device} for a single painting beside what is there: give it "
                '[reward.hpsv3] quantization = "8bit" or "4bit", or device = "cpu", or the policy less memory'
            )
        self.batch_size = tried // 2


def _load_head(weights: Path, rows: int) -> nn.Sequential:
    """The head in float32, read from the file itself, after a look whether the file is HPSv3's at all."""
    try:
        with safe_open(weights, framework="pt") as file:
            names = set(file.keys())
            absent = sorted({EMBEDDING, *BESIDE_THE_BODY} - names)
            if absent:
                raise SetupError(f"{weights} is not HPSv3: it lacks {_first(absent)}")
            found = file.get_slice(EMBEDDING).get_shape()[0]
            if found != rows:
                raise SetupError(
                    f"{weights} knows {found} tokens, but the tokenizer of the base with {REWARD} has {rows}: "
                    "base and weights do not belong together"
                )
            state = {name.removeprefix("rm_head."): file.get_tensor(name).float() for name in HEAD}
    except (SafetensorError, OSError) as error:
        raise SetupError(
            f"{weights} is no whole safetensors file ({error}): it may be cut short; fetch it again"
        ) from error
    (wide, width), narrow = state["0.weight"].shape, state["3.weight"].shape[0]
    head = nn.Sequential(
        nn.Linear(width, wide), nn.ReLU(), nn.Dropout(0.05), nn.Linear(wide, narrow), nn.ReLU(), nn.Linear(narrow, 2)
    )
    try:
        head.load_state_dict(state)
    except RuntimeError as error:
        raise SetupError(f"{weights} is not HPSv3: the layers of its head do not fit together") from error
    return head


def _load_body(
    weights: Path, base: Path, rows: int, quantization: str, dtype: torch.dtype, device: torch.device
) -> Qwen2VLModel:
    """Qwen2-VL without its language head. Qwen2VLModel itself maps the checkpoint's older names to its own; a class of
    another name would leave the language model as it was initialised, so what was loaded is checked name by name."""
    try:
        described = json.loads((base / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise SetupError(f"{base / 'config.json'} is no JSON ({error})") from error
    if described.get("model_type") != "qwen2_vl":
        raise SetupError(f"{base / 'config.json'} describes {described.get('model_type')!r}, not 'qwen2_vl'")
    config = Qwen2VLConfig.from_dict(described)
    config.text_config.vocab_size = rows
    options: dict[str, Any] = {"dtype": dtype, "device_map": {"": str(device)}, "attn_implementation": "sdpa"}
    if quantization != "none":
        # It warns in every layer of every pass that int8 is made by way of float16, which cannot be otherwise.
        logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
        options["quantization_config"] = packing(quantization, dtype, ["visual"])
    with tempfile.TemporaryDirectory() as folder, _quiet():
        config.save_pretrained(folder)
        (Path(folder) / "model.safetensors").symlink_to(weights)
        body, report = Qwen2VLModel.from_pretrained(
            folder, output_loading_info=True, ignore_mismatched_sizes=True, local_files_only=True, **options
        )
    odd = {
        "lacks": sorted(report["missing_keys"]),
        "has the wrong shape at": sorted(str(key[0]) for key in report["mismatched_keys"]),
        "has beside what is known": sorted(set(report["unexpected_keys"]) - BESIDE_THE_BODY),
    }
    for fault, names in odd.items():
        if names:
            raise SetupError(f"{weights} is not HPSv3 for this base: it {fault} {_first(names)}")
    return body


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's report on what was not loaded: `_load_body` reads it itself."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


def _first(names: Sequence[str], shown: int = 3) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
