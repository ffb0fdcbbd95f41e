"""What a painting's pixels say: decoding and paint coverage.

Coverage (the recipe's "paint coverage"): composite on white, quantise RGB to 4 bits a channel, take the mean colour of
the most frequent bin as the paper, and count the share of pixels whose Euclidean RGB distance from it is above 32.
"""

from __future__ import annotations

import cv2
import numpy as np

PAPER_DISTANCE = 32.0


def decode(png: bytes) -> np.ndarray:
    """PNG bytes -> uint8 array [height, width, 3], RGB, composited on white. Raises ValueError if it is no image."""
    image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None:
        raise ValueError("not an image that can be decoded")
    if image.ndim == 2:
        return cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    if image.shape[2] == 3:
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    alpha = image[..., 3]
    rgb = cv2.cvtColor(image, cv2.COLOR_BGRA2RGB)
    if alpha.min() == 255:
        return rgb
    weight = alpha[..., None].astype(np.float32) / 255.0
    return np.rint(rgb * weight + 255.0 * (1.0 - weight)).astype(np.uint8)


def coverage(image: bytes | np.ndarray) -> float:
    """Share of pixels that differ from the paper, 0..1. image: PNG bytes or uint8 [height, width, 3] RGB."""
    rgb = decode(image) if isinstance(image, bytes) else image
    pixels = rgb.reshape(-1, 3).astype(np.int32)
    quantised = pixels >> 4
    bins = (quantised[:, 0] << 8) | (quantised[:, 1] << 4) | quantised[:, 2]
    modal = np.bincount(bins, minlength=4096).argmax()
    paper = pixels[bins == modal].mean(axis=0)
    distance_squared = ((pixels - paper) ** 2).sum(axis=1)
    return float((distance_squared > PAPER_DISTANCE**2).mean())
