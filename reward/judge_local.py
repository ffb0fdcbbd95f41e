"""The judge in this process: Qwen3-VL or Qwen3-VL-MoE in transformers, without AutoProcessor and torchvision.

Patches come from reward.qwen_image, the text in the models' chat format is written here, and positions are the models'
own two-dimensional ones (M-RoPE, from the token types). soft: log-probabilities at the last position of one forward
pass. verdict: greedy generation. One question at a time, behind a lock: the model keeps a state between its passes.

Left out: batches (a picture pair is some 700 tokens; asking a server is the way to speed), and quantised experts:
bitsandbytes leaves the fused ones of the MoE models as they are. In 8 or 4 bits the vision tower and the output layer
stay whole.
"""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForImageTextToText, AutoTokenizer

from render.errors import SetupError
from reward.faults import Fault, one_line
from reward.placing import device_of, dtype_of, packing
from reward.qwen_image import on_white, patches, smart_resize
from reward.settings import VlmSettings
from reward.verdict import MAX_TOKENS, Answer, Prompt, letters, read_verdict, sigmoid

CLASSES = ("qwen3_vl", "qwen3_vl_moe")
IMAGE, VISION_START, VISION_END = "<|image_pad|>", "<|vision_start|>", "<|vision_end|>"
TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"
MEAN = STD = (0.5, 0.5, 0.5)
FEWEST_PIXELS, MOST_PIXELS = 256 * 256, 4096 * 4096  # of the models' own image processor
WHOLE = ["model.visual", "visual", "lm_head"]


class TransformersJudge:
    """Back end `transformers`. Raises SetupError where the model is not here, of another class, or incomplete."""

    stand_in = False
    concurrent = False

    def __init__(self, settings: VlmSettings) -> None:
        self.image_size = settings.image_size
        self.device = device_of(settings.device, "reward.vlm")
        bits = settings.quantization
        self.dtype = dtype_of(settings.dtype, self.device)
        self.name = f"{settings.model} in this process" + ("" if bits == "none" else f" ({bits})")
        self.identity = json.dumps(
            ["transformers", settings.model, settings.revision, str(self.dtype), bits, _stamp(Path(settings.model))]
        )
        self.lock = threading.Lock()
        source: dict[str, Any] = {"revision": settings.revision or None}
        try:
            config = AutoConfig.from_pretrained(settings.model, **source)
            if config.model_type not in CLASSES:
                raise SetupError(
                    f'[reward.vlm] model "{settings.model}" is a {config.model_type}; in this process the judge can be '
                    f"a {' or a '.join(CLASSES)}"
                )
            self.tokenizer = AutoTokenizer.from_pretrained(settings.model, **source)
            self.model, told = AutoModelForImageTextToText.from_pretrained(
                settings.model,
                config=config,
                dtype=self.dtype,
                quantization_config=packing(bits, self.dtype, WHOLE),
                device_map={"": str(self.device)},
                output_loading_info=True,
                **source,
            )
        except (OSError, ValueError, ImportError) as error:
            raise SetupError(f"the judge {settings.model} cannot be loaded: {one_line(str(error), 300)}") from error
        if told["missing_keys"] or told["mismatched_keys"]:
            first = sorted([*told["missing_keys"], *(key for key, *_ in told["mismatched_keys"])])[0]
            raise SetupError(f"the weights of {settings.model} do not fit its config: {first} is missing or mis-shaped")
        self.model.eval()
        vision = config.vision_config
        self.patch, self.merge = vision.patch_size, vision.spatial_merge_size
        self.image_id = config.image_token_id
        if self.tokenizer.convert_tokens_to_ids(IMAGE) != self.image_id:
            raise SetupError(f"the tokenizer of {settings.model} does not know {IMAGE} as token {self.image_id}")
        self.letters = {
            ids[0]: letter
            for letter in "AB"
            for text in (letter, f" {letter}")
            if len(ids := self.tokenizer.encode(text, add_special_tokens=False)) == 1
        }
        if set(self.letters.values()) != {"A", "B"}:
            raise SetupError(f"the tokenizer of {settings.model} has no tokens for the letters A and B")

    def ask(self, first: bytes, second: bytes, prompt: Prompt) -> Answer:
        inputs = self.inputs(first, second, prompt)
        length = inputs["input_ids"].shape[1]
        with self.lock, torch.inference_mode():
            if prompt.mode == "soft":
                return self._letter(inputs, length)
            return self._verdict(inputs, length)

    def inputs(self, first: bytes, second: bytes, prompt: Prompt) -> dict[str, Tensor]:
        """What the model is fed: input_ids (1, L); attention_mask and mm_token_type_ids (1 within a picture) like it;
        pixel_values (patches of both pictures, 3 * 2 * patch^2); image_grid_thw (2, 3)."""
        cut = [self._patches(png) for png in (first, second)]
        pads = [math.prod(grid) // self.merge**2 for _, grid in cut]
        before, between, after = (_plain(text) for text in prompt.texts)
        shown = [f"{VISION_START}{IMAGE * count}{VISION_END}" for count in pads]
        text = f"{TURN_START}user\n{before}{shown[0]}{between}{shown[1]}{after}{TURN_END}\n{TURN_START}assistant\n"
        ids = torch.tensor([self.tokenizer.encode(text, add_special_tokens=False)])
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "mm_token_type_ids": (ids == self.image_id).int(),
            "pixel_values": torch.from_numpy(np.concatenate([pixels for pixels, _ in cut])).to(self.dtype),
            "image_grid_thw": torch.tensor([grid for _, grid in cut]),
        }
        return {name: tensor.to(self.device) for name, tensor in inputs.items()}

    def _patches(self, png: bytes) -> tuple[np.ndarray, tuple[int, int, int]]:
        image = on_white(png)
        factor = self.patch * self.merge
        size = smart_resize(image.height, image.width, factor, FEWEST_PIXELS, MOST_PIXELS)
        return patches(image, self.patch, self.merge, MEAN, STD, size)

    def _letter(self, inputs: dict[str, Tensor], length: int) -> Answer:
        logits = self.model(**inputs, logits_to_keep=1, use_cache=False).logits[0, -1]
        logprobs = logits.float().log_softmax(dim=-1)
        logit, mass = letters([(letter, float(logprobs[token])) for token, letter in self.letters.items()])
        return Answer(sigmoid(logit), logit, mass, "", length, 1)

    def _verdict(self, inputs: dict[str, Tensor], length: int) -> Answer:
        made = self.model.generate(
            **inputs,
            max_new_tokens=MAX_TOKENS["verdict"],
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            temperature=None,
            top_p=None,
            top_k=None,
            pad_token_id=self.tokenizer.pad_token_id,
            eos_token_id=self.tokenizer.convert_tokens_to_ids(TURN_END),
        )[0, length:]
        text = self.tokenizer.decode(made, skip_special_tokens=True)
        try:
            first, reason = read_verdict(text)
        except ValueError as error:  # the same question would be answered in the same words again
            raise Fault("verdict", str(error), again=False, of_service=False, tokens=(length, len(made))) from error
        return Answer(first, None, None, reason, length, len(made))


def _plain(text: str) -> str:
    """The text without names of special tokens, which would be read as such."""
    for token in (IMAGE, VISION_START, VISION_END, TURN_START, TURN_END, "<|video_pad|>", "<|endoftext|>"):
        text = text.replace(token, "")
    return text


def _stamp(folder: Path) -> list[list[Any]]:
    """Names, sizes and times of a folder's weights, so that answers of other weights are not taken for theirs."""
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    return [[file.name, file.stat().st_size, int(file.stat().st_mtime)] for file in files]
