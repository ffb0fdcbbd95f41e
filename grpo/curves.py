"""The reward curve of a run as a picture: as it was paid, and with the luck of the draw taken out.

A step's references are drawn anew, and an easy draw lifts the judge's mean whatever the policy does. The second line is
reward - w_judge * effect of the draw, the effect taken from the fit of reward.strength over the whole run so far.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 56, 44
PAPER, INK, FAINT, RAW, ADJUSTED = "#ffffff", "#22252b", "#e4e3df", "#b9b3a6", "#d9663b"
SUPERSAMPLE = 2  # drawn larger and scaled down, so that lines are smooth


def reward_curve(steps: Sequence[int], raw: Sequence[float], adjusted: Sequence[float], title: str) -> bytes:
    """PNG of both lines over the steps. raw, adjusted: a value for each of `steps`."""
    scale = SUPERSAMPLE
    image = Image.new("RGB", (WIDTH * scale, HEIGHT * scale), PAPER)
    draw = ImageDraw.Draw(image)
    large, small = (ImageFont.load_default(size * scale) for size in (18, 13))
    values = [*raw, *adjusted]
    low, high = _range(min(values, default=0.0), max(values, default=1.0))
    first, last = (min(steps), max(steps)) if steps else (0, 1)

    def place(step: int, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (step - first) / max(1, last - first)
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)
        return x * scale, y * scale

    def text(x: float, y: float, words: str, font: object, fill: str, anchor: str) -> None:
        draw.text((x * scale, y * scale), words, fill=fill, font=font, anchor=anchor)  # type: ignore[arg-type]

    for tick in range(round(low * 20), round(high * 20) + 1):
        value = tick / 20
        start, end = place(first, value), place(last, value)
        draw.line((*start, *end), FAINT, scale)
        text(LEFT - 8, start[1] / scale, f"{value:.2f}", small, INK, "rm")
    for step in sorted({first, last, *range(0, last, max(1, round(last / 8 / 5) * 5 or 1))}):
        if step >= first:
            text(place(step, low)[0] / scale, HEIGHT - BOTTOM + 8, str(step), small, INK, "ma")
    text(WIDTH - RIGHT, HEIGHT - 8, "step", small, INK, "rb")
    text(LEFT, 14, title, large, INK, "la")
    for line, colour, name, x in (
        (raw, RAW, "as paid", 500),
        (adjusted, ADJUSTED, "without the luck of the draw", 620),
    ):
        points = [place(step, value) for step, value in zip(steps, line, strict=True)]
        if len(points) > 1:
            draw.line(points, colour, 2 * scale, joint="curve")
        for px, py in points:
            radius = 2 * scale
            draw.ellipse((px - radius, py - radius, px + radius, py + radius), colour)
        draw.line((x * scale, 24 * scale, (x + 20) * scale, 24 * scale), colour, 3 * scale)
        text(x + 26, 24, name, small, INK, "lm")
    buffer = io.BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.BOX).save(buffer, "PNG")
    return buffer.getvalue()


def _range(low: float, high: float) -> tuple[float, float]:
    """The values' range, widened to whole twentieths."""
    bottom, top = int(low * 20 - 1e-9), int(high * 20 + 1 - 1e-9)
    return bottom / 20, max(top, bottom + 2) / 20
