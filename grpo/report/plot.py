"""Small charts with Pillow: panels with axes, lines with gaps, points, bars and areas. Drawn larger and scaled down.

A `Sheet` is the paper; a `Panel` on it has its own axes and draws in its own numbers (x, y).
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageColor, ImageDraw, ImageFont

from grpo.folder import write_error
from render.disk import write_whole

SCALE = 3  # drawn that much larger
PAPER, INK, SOFT, GRID = "#ffffff", "#22252b", "#7d7a73", "#ecebe7"
COLOURS = ("#d9663b", "#2f6f8f", "#6a994e", "#8d5a97", "#c79a2b", "#4f5d75", "#b0413e", "#3d8b7d")
Values = Sequence[float | None]


class Sheet:
    """A white picture of width x height pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.image = Image.new("RGB", (width * SCALE, height * SCALE), PAPER)
        self.draw = ImageDraw.Draw(self.image, "RGBA")
        self._fonts: dict[int, ImageFont.FreeTypeFont | ImageFont.ImageFont] = {}

    def font(self, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        if size not in self._fonts:
            self._fonts[size] = ImageFont.load_default(size * SCALE)
        return self._fonts[size]

    def text(self, x: float, y: float, words: str, size: int = 13, fill: str = INK, anchor: str = "la") -> None:
        self.draw.text((x * SCALE, y * SCALE), words, fill=fill, font=self.font(size), anchor=anchor)

    def length(self, words: str, size: int = 13) -> float:
        """Width of a text in pixels."""
        return float(self.draw.textlength(words, font=self.font(size))) / SCALE

    def line(self, points: Sequence[tuple[float, float]], fill: str, width: float = 1.0) -> None:
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self.draw.line(scaled, fill, max(1, round(width * SCALE)), joint="curve")

    def box(self, x: float, y: float, right: float, bottom: float, fill: str | tuple[int, ...]) -> None:
        left, top = round(x * SCALE), round(y * SCALE)
        end, low = round(right * SCALE) - 1, round(bottom * SCALE) - 1
        if end >= left and low >= top:
            self.draw.rectangle((left, top, end, low), fill)

    def dot(self, x: float, y: float, radius: float, fill: str | tuple[int, ...]) -> None:
        self.draw.ellipse(tuple(SCALE * value for value in (x - radius, y - radius, x + radius, y + radius)), fill)

    def png(self) -> bytes:
        buffer = io.BytesIO()
        self.image.resize((self.width, self.height), Image.Resampling.BOX).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def save(self, path: Path) -> None:
        """Whole or as it was. Raises UserError when the disk refuses."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, self.png())
        except OSError as error:
            raise write_error(path, error) from error


class Panel:
    """A chart at (x, y) of a sheet, width x height pixels with its title. x_range: steps from, to.

    y_range: of the values that will be drawn; it is widened to round numbers. form: of the numbers at the axis.
    """

    LEFT, RIGHT, TOP, BOTTOM = 52, 14, 56, 26

    def __init__(
        self,
        sheet: Sheet,
        place: tuple[float, float, float, float],
        title: str,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        form: str = "g",
    ) -> None:
        x, y, width, height = place
        self.sheet, self.title_x = sheet, x
        self.left, self.right = x + self.LEFT, x + width - self.RIGHT
        self.top, self.bottom = y + self.TOP, y + height - self.BOTTOM
        self.x_range = x_range
        ticks = round_ticks(*y_range)
        self.low, self.high = ticks[0], ticks[-1]
        self._legend_x = self.left
        sheet.text(x + 8, y + 6, title, 16)
        for value in ticks:
            height_of = self.at(x_range[0], value)[1]
            sheet.line([(self.left, height_of), (self.right, height_of)], GRID)
            sheet.text(self.left - 8, height_of, format(value, form), 12, SOFT, "rm")
        for step in step_ticks(*x_range):
            sheet.text(self.at(step, self.low)[0], self.bottom + 8, str(step), 12, SOFT, "ma")

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point; values outside the axes lie on their edge."""
        first, last = self.x_range
        share = (x - first) / (last - first) if last > first else 0.5
        rise = (min(max(y, self.low), self.high) - self.low) / (self.high - self.low)
        return self.left + (self.right - self.left) * share, self.bottom - (self.bottom - self.top) * rise

    def legend(self, name: str, colour: str) -> None:
        """A name in the colour of its line, beside those before it; what has no room is left out."""
        width = 16 + self.sheet.length(name, 12)
        if self._legend_x + width > self.right + self.RIGHT:
            return
        y = self.top - 16
        self.sheet.box(self._legend_x, y - 2, self._legend_x + 11, y + 2, colour)
        self.sheet.text(self._legend_x + 16, y, name, 12, INK, "lm")
        self._legend_x += width + 14

    def line(self, x: Sequence[float], y: Values, colour: str, name: str = "", width: float = 2.0) -> None:
        """A line through the values that are there, broken where one is missing; one alone is a dot."""
        for run in unbroken(x, y):
            points = [self.at(*point) for point in run]
            if len(points) > 1:
                self.sheet.line(points, colour, width)
            else:
                self.sheet.dot(*points[0], width, colour)
        if name:
            self.legend(name, colour)

    def dots(self, points: Sequence[tuple[float, float]], colour: str, alpha: int = 90, radius: float = 1.6) -> None:
        fill = (*ImageColor.getrgb(colour)[:3], alpha)
        for x, y in points:
            self.sheet.dot(*self.at(x, y), radius, fill)

    def level(self, value: float, colour: str = SOFT) -> None:
        """A dashed line across."""
        if not self.low <= value <= self.high:
            return
        y = self.at(self.x_range[0], value)[1]
        start = self.left
        while start < self.right:
            self.sheet.line([(start, y), (min(start + 5, self.right), y)], colour)
            start += 9

    def stacked(self, x: Sequence[float], layers: Sequence[tuple[str, str, Values]]) -> None:
        """Bars on top of one another at each x: (name, colour, values); a missing value has no height."""
        first, last = self.x_range
        half = (self.right - self.left) / max(1.0, last - first) / 2
        for place, step in enumerate(x):
            middle = self.at(step, 0)[0]
            base = 0.0
            for _, colour, values in layers:
                top = base + (values[place] or 0.0)
                edges = (max(self.left, middle - half), min(self.right, middle + half))
                self.sheet.box(edges[0], self.at(step, top)[1], edges[1] + 0.5, self.at(step, base)[1], colour)
                base = top
        for name, colour, _ in layers:
            if name:
                self.legend(name, colour)


def unbroken(x: Sequence[float], y: Values) -> list[list[tuple[float, float]]]:
    """The stretches between missing values."""
    runs: list[list[tuple[float, float]]] = [[]]
    for step, value in zip(x, y, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((step, value))
    return [run for run in runs if run]


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that span low..high, about that many."""
    if high - low < 1e-9:
        low, high = low - 0.5 * max(abs(low), 0.1), high + 0.5 * max(abs(high), 0.1)
    raw = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.999)
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(index * step, digits) for index in range(first, last + 1)]


def step_ticks(first: float, last: float) -> list[int]:
    """The first and last step and round ones between them that do not touch these."""
    whole, room = range(int(first), int(last)), (last - first) / 12
    inner = [round(value) for value in round_ticks(first, last, 6)] if last - first > 6 else list(whole)
    ends = [int(first)] if last <= first else [int(first), int(last)]
    return sorted({*ends, *(step for step in inner if first + room < step < last - room)})


def spread(*series: Values | None, floor: float | None = None) -> tuple[float, float]:
    """The range of all values, from `floor` where one is given."""
    values = [value for one in series if one is not None for value in one if value is not None]
    if not values:
        return 0.0, 1.0
    return (min(values) if floor is None else min(floor, *values)), max(values)
