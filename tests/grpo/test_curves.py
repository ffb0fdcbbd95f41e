"""The reward curve: a picture for any number of steps, with both lines in it."""

import io

import numpy as np
import pytest
from PIL import Image, ImageColor

from grpo.curves import ADJUSTED, RAW, reward_curve


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_any_number_of_steps_makes_a_picture(count: int) -> None:
    steps = list(range(1, count + 1))
    png = reward_curve(steps, [0.4] * count, [0.5] * count, "Reward")
    assert Image.open(io.BytesIO(png)).size == (960, 420)


def test_each_line_lies_where_its_values_are() -> None:
    png = reward_curve([1, 2, 3], [0.43] * 3, [0.57] * 3, "Reward")
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)[70:370, 100:900]
    rows = {}
    for colour in (RAW, ADJUSTED):
        near = np.abs(pixels - ImageColor.getrgb(colour)).sum(axis=2) < 12
        assert near.sum() > 500
        rows[colour] = near.nonzero()[0].mean()
    assert rows[ADJUSTED] < rows[RAW] - 150
