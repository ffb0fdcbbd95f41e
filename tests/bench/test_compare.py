"""SSIM and the difference of two paintings, against cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench.compare import C1, C2, difference, ssim


def flat(level: int, side: int = 24) -> np.ndarray:
    return np.full((side, side, 3), level, np.uint8)


def noise(seed: int, side: int = 32) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


def test_equal_images() -> None:
    assert ssim(noise(0), noise(0)) == pytest.approx(1.0, abs=1e-9)


def test_flat_images_differ_in_luminance_alone() -> None:
    a, b = 100, 160
    assert ssim(flat(a), flat(b)) == pytest.approx((2 * a * b + C1) / (a * a + b * b + C1), rel=1e-9)


def test_one_window_against_the_formula_written_out() -> None:
    """An image of 11 x 11 has one window: weights, means, variances and covariance by their definitions."""
    x, y = (noise(seed, 11)[..., 0].astype(float) for seed in (1, 2))
    steps = np.arange(-5, 6)
    weights = np.exp(-(steps[:, None] ** 2 + steps[None, :] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    mean_x, mean_y = (weights * x).sum(), (weights * y).sum()
    variance_x, variance_y = (weights * (x - mean_x) ** 2).sum(), (weights * (y - mean_y) ** 2).sum()
    covariance = (weights * (x - mean_x) * (y - mean_y)).sum()
    wanted = ((2 * mean_x * mean_y + C1) * (2 * covariance + C2)) / (
        (mean_x**2 + mean_y**2 + C1) * (variance_x + variance_y + C2)
    )
    assert ssim(x, y) == pytest.approx(wanted, rel=1e-9)


def test_inverted_texture_is_near_minus_one() -> None:
    """Around the middle level an inverted image has the same mean and variance and the opposite covariance."""
    texture = np.random.default_rng(3).choice(np.array([48, 207], np.uint8), (64, 64))
    assert ssim(texture, 255 - texture) < -0.7
    assert ssim(texture, texture) == pytest.approx(1.0)


def test_channels_count_alike() -> None:
    """Red replaced by noise, green and blue kept: a third of the way from 1 to the value of red alone."""
    image = noise(4)
    other = image.copy()
    other[..., 0] = noise(5)[..., 0]
    red = ssim(image[..., 0], other[..., 0])
    assert ssim(image, other) == pytest.approx((2 + red) / 3, rel=1e-9)


def test_symmetric_and_falls_with_the_error() -> None:
    image = noise(6)
    near = np.clip(image.astype(int) + 3 * (noise(7) > 127), 0, 255).astype(np.uint8)
    far = np.clip(image.astype(int) + 40 * (noise(7) > 127), 0, 255).astype(np.uint8)
    assert ssim(image, near) == pytest.approx(ssim(near, image))
    assert 1 > ssim(image, near) > ssim(image, far)


def test_what_has_no_ssim_is_refused() -> None:
    with pytest.raises(ValueError, match="different shapes"):
        ssim(flat(1, 24), flat(1, 25))
    with pytest.raises(ValueError, match="smaller than the window"):
        ssim(flat(1, 10), flat(1, 10))


def test_levels_and_coverage() -> None:
    """A quarter of white paper painted black, against an eighth of it: all numbers follow from the counts."""
    reference, image = flat(255, 32), flat(255, 32)
    reference[:8] = 0
    image[:4] = 0
    found = difference(image, reference)
    assert (found.coverage, found.reference_coverage, found.coverage_error) == (0.125, 0.25, 0.5)
    assert found.mad == pytest.approx(255 / 8)
    assert found.bias == pytest.approx(255 / 8)
    assert difference(reference, image).bias == pytest.approx(-255 / 8)
    assert found.maximum == 255
