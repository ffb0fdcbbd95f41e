"""From a picture to the patches that a Qwen vision-language model reads.

The road is that of the models' own slow image processor: RGB, resized with PIL's bicubic filter to a multiple of
patch * merge, scaled to 0..1, normalised, cut into patches in the order in which the model merges them. HPSv3
(patch 14) and Qwen3-VL (patch 16) share it. Left out: video; a still picture is one frame, shown twice, because the
models read two frames at once.

Traps of `smart_resize`, which scores feel: the sizes it gives depend on float rounding (512 x 512 becomes 448 x 448,
768 x 768 becomes 420 x 420), and it is not idempotent: a picture must go through it once.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

FRAMES = 2
WIDEST = 200  # sides' ratio beyond which the models' own processors refuse a picture


def on_white(image: bytes) -> Image.Image:
    """The RGB picture in an image file; what is transparent shows white paper. Raises PIL's error if it is none."""
    picture = Image.open(io.BytesIO(image))
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")


def smart_resize(height: int, width: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """(height, width) to resize to: multiples of `factor`, the product within the two bounds, the aspect nearly kept.

    Source: qwen-vl-utils and transformers' Qwen2VLImageProcessor. Raises ValueError where one side is more than 200
    times the other.
    """
    if max(height, width) > WIDEST * min(height, width):
        raise ValueError(f"a picture of {width} x {height} is too narrow: one side is over {WIDEST} times the other")
    rows, columns = round(height / factor) * factor, round(width / factor) * factor
    if rows * columns > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        rows = max(factor, math.floor(height / shrink / factor) * factor)
        columns = max(factor, math.floor(width / shrink / factor) * factor)
    elif rows * columns < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        rows, columns = math.ceil(height * grow / factor) * factor, math.ceil(width * grow / factor) * factor
    return rows, columns


def patches(
    image: Image.Image, patch: int, merge: int, mean: Sequence[float], std: Sequence[float], size: tuple[int, int]
) -> tuple[NDArray[np.float32], tuple[int, int, int]]:
    """pixel_values (grid height * grid width, 3 * 2 * patch * patch) and the grid (1, grid height, grid width).

    image: RGB. size: (height, width), multiples of patch * merge, as `smart_resize` gives it. Each merge x merge block
    of patches stands together, row after row.
    """
    height, width = size
    resized = np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
    # Scaled in double, normalised in single precision: what the models' processor does, to the bit.
    scaled = (resized * (1 / 255)).astype(np.float32)
    normalised = (scaled - np.array(mean, np.float32)) / np.array(std, np.float32)
    rows, columns = height // patch, width // patch
    blocks = normalised.transpose(2, 0, 1).reshape(3, rows // merge, merge, patch, columns // merge, merge, patch)
    ordered = blocks.transpose(1, 4, 2, 5, 0, 3, 6)[..., None, :, :]
    shown_twice = np.repeat(ordered, FRAMES, axis=5)
    return np.ascontiguousarray(shown_twice.reshape(rows * columns, -1)), (1, rows, columns)
