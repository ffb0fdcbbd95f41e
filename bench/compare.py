"""How far two paintings are apart: SSIM, absolute difference in levels, paint coverage.

SSIM after Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural similarity",
IEEE TIP 13(4), 2004, equation 13, with the constants of section III-C: a Gaussian window of 11 x 11 with a standard
deviation of 1.5, K1 = .01, K2 = .03, L = 255, mean over the windows that lie wholly inside the image. Here it is the
mean over red, green and blue, each by itself. Left out: the downsampling that the authors advise for large images.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from render.pixels import coverage

WINDOW, SIGMA = 11, 1.5
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


@dataclass(frozen=True)
class Difference:
    """An image against its reference.

    mad: mean absolute difference over pixels and channels, in levels of 255. maximum: the largest one. bias: mean
    signed difference (positive: lighter than the reference). ssim: 1 for equal images. coverage, reference_coverage:
    shares of painted pixels, 0..1. coverage_error: |coverage - reference| / reference.
    """

    mad: float
    maximum: int
    bias: float
    ssim: float
    coverage: float
    reference_coverage: float
    coverage_error: float


def ssim(a: np.ndarray, b: np.ndarray) -> float:
    """Mean SSIM of two images [height, width] or [height, width, channels] of levels 0..255.

    Raises ValueError when the shapes differ or a side is shorter than the window.
    """
    if a.shape != b.shape:
        raise ValueError(f"images of different shapes: {a.shape} and {b.shape}")
    if min(a.shape[:2]) < WINDOW:
        raise ValueError(f"images of {a.shape[1]} x {a.shape[0]} are smaller than the window of {WINDOW} x {WINDOW}")
    x, y = a.astype(np.float64), b.astype(np.float64)
    edge = WINDOW // 2

    def local_mean(image: np.ndarray) -> np.ndarray:
        return cv2.GaussianBlur(image, (WINDOW, WINDOW), SIGMA)[edge:-edge, edge:-edge]

    mean_x, mean_y = local_mean(x), local_mean(y)
    variance_x = local_mean(x * x) - mean_x * mean_x
    variance_y = local_mean(y * y) - mean_y * mean_y
    covariance = local_mean(x * y) - mean_x * mean_y
    luminance = (2 * mean_x * mean_y + C1) / (mean_x * mean_x + mean_y * mean_y + C1)
    structure = (2 * covariance + C2) / (variance_x + variance_y + C2)
    return float((luminance * structure).mean())


def difference(image: np.ndarray, reference: np.ndarray) -> Difference:
    """Two uint8 images [height, width, 3], RGB. Raises ValueError when their shapes differ."""
    structural = ssim(image, reference)
    signed = image.astype(np.int16) - reference.astype(np.int16)
    own, wanted = coverage(image), coverage(reference)
    return Difference(
        mad=float(np.abs(signed).mean()),
        maximum=int(np.abs(signed).max()),
        bias=float(signed.mean()),
        ssim=structural,
        coverage=own,
        reference_coverage=wanted,
        coverage_error=abs(own - wanted) / wanted if wanted else float(own > 0),
    )
