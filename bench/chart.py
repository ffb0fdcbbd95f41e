"""One picture of the result: seconds a painting, a bar for each sketch and profile, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

INK, GRID, PAPER = "#22252b", "#d9d9d4", "#ffffff"
COLOURS = ("#b9b3a6", "#7f9fc4", "#d9663b", "#6f8f5c")
LEFT, PLOT, RIGHT, TOP, BOTTOM = 190, 820, 90, 84, 56
BAR, GAP = 16, 14


def draw_chart(
    path: Path, seconds: Mapping[tuple[str, str], float], profiles: Sequence[str], title: str, note: str
) -> None:
    """Write the PNG. seconds: by (profile, sketch); profiles: the order of the bars of one sketch.

    Sketches are sorted by the seconds of the last profile. note: a line of small print.
    """
    fastest = profiles[-1]
    sketches = sorted({sketch for _, sketch in seconds}, key=lambda name: seconds.get((fastest, name), math.inf))
    steps = [factor * 10.0**exponent for exponent in range(-3, 5) for factor in (1, 2, 5)]
    low = max(step for step in steps if step <= min(seconds.values()))
    high = min(step for step in steps if step > max(seconds.values()) * 1.05)
    row = BAR * len(profiles) + GAP
    width, height = LEFT + PLOT + RIGHT, TOP + row * len(sketches) + BOTTOM
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    large, normal, small = (ImageFont.load_default(size) for size in (20, 14, 12))

    def x_of(value: float) -> float:
        return LEFT + PLOT * (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low))

    draw.text((LEFT, 12), title, INK, large)
    x = float(LEFT)
    for profile, colour in zip(profiles, COLOURS, strict=False):
        draw.rectangle((x, 48, x + 14, 62), colour)
        draw.text((x + 20, 55), profile, INK, normal, anchor="lm")
        x += 44 + draw.textlength(profile, normal)

    bottom = height - BOTTOM
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for factor in range(1, 10):
            value = factor * 10.0**exponent
            if not low <= value <= high:
                continue
            draw.line((x_of(value), TOP - 6, x_of(value), bottom), GRID if factor == 1 else "#f1f1ee")
            if factor in (1, 2, 5):
                draw.text((x_of(value), bottom + 6), f"{value:g}", INK, small, anchor="ma")
    draw.text((LEFT + PLOT, bottom + 24), "seconds a painting, median, one worker", INK, small, anchor="ra")
    draw.text((12, height - 18), note, "#6b6f76", small, anchor="lm")

    for index, sketch in enumerate(sketches):
        top = TOP + row * index
        draw.text((LEFT - 12, top + (row - GAP) / 2), sketch, INK, normal, anchor="rm")
        for place, (profile, colour) in enumerate(zip(profiles, COLOURS, strict=False)):
            median = seconds.get((profile, sketch))
            if median is None:
                continue
            y, end = top + BAR * place, x_of(median)
            draw.rectangle((LEFT, y + 1, end, y + BAR - 2), colour)
            label = f"{median:.2f}" if median < 10 else f"{median:.0f}"
            draw.text((end + 6, y + BAR / 2), label, INK, small, "lm")
    image.save(path, optimize=True)
