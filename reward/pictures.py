"""Pictures as the judge gets them: composited on white, no larger than asked, PNG, each prepared once.

Left out: enlarging. A small canvas stays small, so that what the judge sees is what was painted.
"""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image

from reward.qwen_image import on_white

PREPARED = 128  # pictures kept: the candidates of a step or two and their references


@dataclass(frozen=True)
class Picture:
    """png: what is sent. digest: sha256 of size and pixels, the same whichever library wrote the file."""

    png: bytes
    digest: str


@lru_cache(maxsize=PREPARED)
def prepared(png: bytes, longer_side: int) -> Picture:
    """The picture on white, its longer side at most `longer_side` pixels (Lanczos). PIL error if it is none."""
    image = on_white(png)
    scale = longer_side / max(image.size)
    if scale < 1.0:
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    return Picture(_encode(image), hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest())


def _encode(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def known_pair(variation: int = 0) -> tuple[bytes, bytes]:
    """Two pictures for a first question: a few soft, overlapping washes, and one hard grey block.

    variation: changes one pixel.
    """
    rows, columns = np.mgrid[0:256, 0:256]
    washes = np.full((256, 256, 3), 245.0)
    for x, y, colour in ((100, 110, (225, 110, 120)), (150, 120, (235, 150, 90)), (125, 160, (200, 90, 140))):
        strength = 0.7 / (1.0 + np.exp((np.hypot(columns - x, rows - y) - 55) / 6.0))
        washes += (np.array(colour) - washes) * strength[..., None]
    block = np.full((256, 256, 3), 245, np.uint8)
    block[70:190, 70:190] = 90
    block[0, 0] = [variation >> shift & 255 for shift in (10, 18, 26)] if variation else 245
    return _encode(Image.fromarray(washes.round().astype(np.uint8))), _encode(Image.fromarray(block))
