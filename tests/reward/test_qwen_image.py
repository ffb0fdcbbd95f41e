import hashlib

import numpy as np
import pytest
import tiny_vl
from PIL import Image

from reward.hps_model import MEAN, MERGE, PATCH, PIXELS, STD
from reward.qwen_image import on_white, patches, smart_resize


def size_of(height, width):
    return smart_resize(height, width, PATCH * MERGE, PIXELS, PIXELS)


@pytest.mark.parametrize("index", range(3))
def test_pixels_are_those_of_the_published_scorer_to_the_bit(index):
    expected = tiny_vl.GOLDEN["samples"][index]
    image = on_white(tiny_vl.golden_png(index))
    pixel_values, grid = patches(image, PATCH, MERGE, MEAN, STD, size_of(image.height, image.width))
    assert list(grid) == expected["grid"]
    assert pixel_values.shape == (grid[1] * grid[2], 3 * 2 * PATCH * PATCH)
    assert pixel_values.astype(np.float64).sum() == pytest.approx(expected["pixel_sum"], abs=1e-3)
    assert hashlib.sha256(pixel_values.tobytes()).hexdigest() == expected["pixel_sha"]


def test_sizes_with_the_traps_of_float_rounding():
    assert {side: size_of(side, side) for side in (448, 512, 640, 768, 1024, 2048)} == {
        448: (448, 448), 512: (448, 448), 640: (448, 448), 768: (420, 420), 1024: (448, 448), 2048: (448, 448),
    }  # fmt: skip
    assert sum(size_of(side, side) != (448, 448) for side in range(28, 4097)) == 450
    assert size_of(600, 800) == (364, 504)
    assert size_of(1080, 1920) == (336, 588)


def test_a_second_resize_would_change_the_size():
    once = size_of(360, 640)
    assert size_of(*once) != once


def test_sizes_stay_multiples_and_a_ribbon_is_refused():
    for height, width in ((1, 200), (3000, 20), (29, 4000), (4096, 4095)):
        rows, columns = size_of(height, width)
        assert rows % 28 == columns % 28 == 0 < rows * columns
    assert smart_resize(300, 500, 32, 32 * 32, 512 * 512) == (288, 512)
    with pytest.raises(ValueError, match="201 x 1 is too narrow"):
        size_of(1, 201)


def test_each_patch_holds_its_square_of_the_picture_twice_and_blocks_stand_together():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    pixel_values, grid = patches(Image.fromarray(pixels), 16, 2, (0.5,) * 3, (0.5,) * 3, (64, 96))
    assert grid == (1, 4, 6)
    order = [(2 * r + i, 2 * c + j) for r in range(2) for c in range(3) for i in range(2) for j in range(2)]
    for found, (row, column) in zip(pixel_values, order, strict=True):
        square = pixels[16 * row :][:16, 16 * column :][:, :16].transpose(2, 0, 1) / 255 * 2 - 1
        found = found.reshape(3, 2, 16, 16)
        np.testing.assert_allclose(found[:, 0], square, atol=1e-6)
        np.testing.assert_array_equal(found[:, 0], found[:, 1])


def test_what_is_transparent_shows_white_and_what_is_not_stays_as_it_is():
    pixels = np.random.default_rng(1).integers(0, 256, (8, 8, 4), np.uint8)
    pixels[..., 3] = 255
    assert np.array_equal(on_white(tiny_vl.png(pixels)), pixels[..., :3])
    pixels[:4, :, 3] = 0
    pixels[4, 0] = (0, 100, 200, 127)
    laid = np.asarray(on_white(tiny_vl.png(pixels)))
    assert (laid[:4] == 255).all()
    assert np.array_equal(laid[5:], pixels[5:, :, :3])
    np.testing.assert_allclose(laid[4, 0], (128, 178, 228), atol=1)
    grey = Image.fromarray(pixels[..., 0])
    assert np.array_equal(np.asarray(on_white(tiny_vl.png(grey)))[..., 2], pixels[..., 0])
