"""Counterfeits: canvases that have the pigment of a painting, but not its form.

From one painting come pictures with its paper and patches of its own paint, laid in shapes that no painter would hang
on a wall (discs, nested discs, dots, shards, scribbles, blankets, stains), and pictures that tear the painting itself
up (blocks, tiles, a crop, swapped halves). `reward.local` trains its critic on them, so that it has seen cheating
before a policy finds it. All randomness comes from the seed.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from reward.features import PAINT_FROM, Array, paper_colour, resized, to_lab

Picture = NDArray[np.uint8]
SIDE = 256


class _Palette:
    """Paper and up to three sheets of real paint (SIDE, SIDE, 3), grown by reflection from a painting's own patches."""

    def __init__(self, picture: Picture, generator: np.random.Generator) -> None:
        self.generator = generator
        self.picture = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        self.paper = paper_colour(self.picture)
        depth = np.linalg.norm(to_lab(self.picture) - to_lab(self.paper.reshape(1, 1, 3)), axis=2)
        inside = (depth > PAINT_FROM).astype(np.uint8)
        inside[[0, -1]] = 0
        inside[:, [0, -1]] = 0
        self.flat = False  # lay flat colour instead of grown paint
        self.sheets: list[Array] = []
        for _ in range(3):
            distance = cv2.distanceTransform(inside, cv2.DIST_L2, 3)
            row, column = np.unravel_index(int(distance.argmax()), distance.shape)
            half = max(2, int(0.7 * distance[row, column]))
            patch = self.picture[row - half : row + half, column - half : column + half]
            if patch.size == 0:
                patch = np.full((4, 4, 3), 128, np.uint8)
            self.sheets.append(
                np.pad(patch, ((0, SIDE), (0, SIDE), (0, 0)), mode="symmetric")[:SIDE, :SIDE].astype(np.float32)
            )
            inside[max(0, row - 2 * half) : row + 2 * half, max(0, column - 2 * half) : column + 2 * half] = 0

    def ground(self) -> Array:
        return np.tile(self.paper, (SIDE, SIDE, 1)).astype(np.float32)

    def lay(self, canvas: Array, shape: Array, strength: float = 1.0) -> Array:
        """Lay a random sheet of paint through a stencil (SIDE, SIDE) of 0..1, with an edge of random softness."""
        sheet = self.sheets[int(self.generator.integers(len(self.sheets)))]
        if self.flat:
            sheet = sheet[:1, :1]
        stencil = cv2.GaussianBlur(shape.astype(np.float32), (0, 0), float(self.generator.uniform(0.5, 1.6))) * strength
        return np.asarray(canvas + (sheet - canvas) * stencil[..., None], dtype=np.float32)

    def polygon(self, points: NDArray[np.float64]) -> Array:
        return np.asarray(cv2.fillPoly(np.zeros((SIDE, SIDE), np.float32), [points.astype(np.int32)], 1.0))

    def circle(self, x: float, y: float, radius: float) -> Array:
        return np.asarray(cv2.circle(np.zeros((SIDE, SIDE), np.float32), (round(x), round(y)), round(radius), 1.0, -1))


def _disc(palette: _Palette) -> Array:
    x, y = palette.generator.uniform(100, 156, 2)
    return palette.lay(palette.ground(), palette.circle(x, y, palette.generator.uniform(45, 105)))


def _nested(palette: _Palette) -> Array:
    canvas, radius = palette.ground(), palette.generator.uniform(70, 115)
    while radius > 14:
        canvas = palette.lay(canvas, palette.circle(128, 128, radius), palette.generator.uniform(0.6, 1.0))
        radius *= palette.generator.uniform(0.5, 0.8)
    return canvas


def _pebble(palette: _Palette) -> Array:
    """One or two blots with a wobbling outline: soft, well placed, and nothing else."""
    canvas, angle = palette.ground(), np.linspace(0, 2 * np.pi, 90, endpoint=False)
    for _ in range(int(palette.generator.integers(1, 3))):
        radius = palette.generator.uniform(45, 95) * np.ones_like(angle)
        for harmonic in range(2, 12):
            phase = palette.generator.uniform(0, 2 * np.pi)
            radius *= 1 + palette.generator.normal(0, 0.05) / np.sqrt(harmonic) * np.cos(harmonic * angle + phase)
        x, y = palette.generator.uniform(105, 151, 2)
        outline = np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], 1)
        canvas = palette.lay(canvas, palette.polygon(outline), palette.generator.uniform(0.6, 1.0))
    return canvas


def _pile(palette: _Palette) -> Array:
    """Discs heaped about the middle: much pigment, soft overlaps, no plan."""
    canvas = palette.ground()
    for _ in range(int(palette.generator.integers(5, 18))):
        x, y = palette.generator.normal(128, 32, 2)
        shape = palette.circle(x, y, palette.generator.uniform(14, 50))
        canvas = palette.lay(canvas, shape, palette.generator.uniform(0.4, 0.9))
    return canvas


def _dots(palette: _Palette) -> Array:
    canvas, pitch = palette.ground(), int(palette.generator.integers(22, 64))
    for y in range(pitch // 2, SIDE, pitch):
        for x in range(pitch // 2, SIDE, pitch):
            cv2.circle(canvas, (x, y), round(0.3 * pitch), palette.sheets[(x + y) % 3][y, x].tolist(), -1, cv2.LINE_AA)
    return canvas


def _shards(palette: _Palette) -> Array:
    canvas, reach = palette.ground(), palette.generator.uniform(20, 60)
    for _ in range(int(palette.generator.integers(8, 26))):
        points = palette.generator.uniform(0, SIDE, 2) + palette.generator.uniform(-reach, reach, (5, 2))
        canvas = palette.lay(canvas, palette.polygon(points), palette.generator.uniform(0.5, 1.0))
    return canvas


def _scribble(palette: _Palette) -> Array:
    canvas, width = palette.ground(), int(palette.generator.choice((2, 4, 8, 12, 16, 22)))
    for _ in range(5 + 50 // width):
        stroke = np.zeros((SIDE, SIDE), np.float32)
        points = palette.generator.uniform(10, SIDE - 10, (5, 2)).astype(np.int32)
        canvas = palette.lay(canvas, cv2.polylines(stroke, [points], False, 1.0, width))
    return canvas


def _blanket(palette: _Palette) -> Array:
    cloud = _cloud(palette.generator, palette.generator.uniform(10, 60))
    return palette.lay(palette.ground(), 0.2 + 0.8 * cloud)


def _stains(palette: _Palette) -> Array:
    cloud = _cloud(palette.generator, palette.generator.uniform(6, 24))
    return palette.lay(palette.ground(), np.clip((cloud - palette.generator.uniform(0.4, 0.6)) * 6, 0, 1))


def _fog(palette: _Palette) -> Array:
    """The pigment of the painting with every form blurred away."""
    sigma = palette.generator.uniform(12, 30)
    return np.asarray(cv2.GaussianBlur(palette.picture.astype(np.float32), (0, 0), sigma))


def _noise(palette: _Palette) -> Array:
    fields = [_cloud(palette.generator, sigma) for sigma in palette.generator.uniform(0.6, 8, 3)]
    return np.asarray(np.stack(fields, 2) * 255, dtype=np.float32)


def _stripes(palette: _Palette) -> Array:
    step = int(palette.generator.integers(10, 40))
    rows, columns = np.mgrid[:SIDE, :SIDE] // step
    return palette.lay(palette.ground(), (columns + rows * int(palette.generator.integers(2))) % 2)


def _blocks(palette: _Palette) -> Array:
    step = SIDE // int(palette.generator.choice((3, 4, 6, 8)))
    count = SIDE // step
    parts = [palette.picture[r * step :][:step, c * step :][:, :step] for r in range(count) for c in range(count)]
    order = palette.generator.permutation(len(parts))
    rows = [np.hstack([parts[order[r * count + c]] for c in range(count)]) for r in range(count)]
    return cv2.resize(np.vstack(rows), (SIDE, SIDE)).astype(np.float32)


def _tiles(palette: _Palette) -> Array:
    count = int(palette.generator.integers(2, 5))
    small = cv2.resize(palette.picture, (SIDE // count, SIDE // count), interpolation=cv2.INTER_AREA)
    return cv2.resize(np.tile(small, (count, count, 1)), (SIDE, SIDE)).astype(np.float32)


def _crop(palette: _Palette) -> Array:
    size = int(palette.generator.integers(40, 75))
    x, y = palette.generator.integers(30, SIDE - 30 - size, 2)
    return cv2.resize(palette.picture[y : y + size, x : x + size], (SIDE, SIDE)).astype(np.float32)


def _halves(palette: _Palette) -> Array:
    shift = palette.generator.integers(90, 166, 2)
    return np.roll(palette.picture, tuple(int(part) for part in shift), (0, 1)).astype(np.float32)


def _cloud(generator: np.random.Generator, sigma: float) -> Array:
    field = cv2.GaussianBlur(generator.normal(size=(SIDE, SIDE)).astype(np.float32), (0, 0), sigma)
    return np.asarray((field - field.min()) / (field.max() - field.min()))


KINDS: tuple[Callable[[_Palette], Array], ...] = (
    _disc, _shards, _nested, _blocks, _pebble, _scribble, _dots, _crop, _pile, _blanket, _nested, _tiles, _pebble,
    _stains, _halves, _shards, _scribble, _disc, _fog, _pile, _scribble, _stripes, _noise,
)  # fmt: skip


def counterfeits(picture: Picture, seed: int, count: int) -> list[Picture]:
    """`count` counterfeits of an RGB picture; consecutive seeds go on through the kinds, so that a pool meets all."""
    generator = np.random.default_rng([seed, count])
    palette = _Palette(resized(picture, SIDE), generator)
    made = []
    for index in range(count):
        palette.flat = bool(generator.random() < 0.35)
        made.append(np.clip(np.rint(KINDS[(seed * count + index) % len(KINDS)](palette)), 0, 255).astype(np.uint8))
    return made


def variations(picture: Picture, seed: int, count: int) -> list[Picture]:
    """`count` honest variations of an RGB picture: mirrored, a little turned, moved and scaled on its own paper."""
    generator = np.random.default_rng([seed, count, 1])
    small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    paper = paper_colour(small)
    varied = []
    for index in range(count):
        base = small[:, ::-1] if index % 2 == 0 else small
        turn = cv2.getRotationMatrix2D((128, 128), generator.uniform(-12, 12), generator.uniform(0.84, 1.02))
        turn[:, 2] += generator.uniform(-9, 9, 2)
        varied.append(
            np.asarray(
                cv2.warpAffine(
                    np.ascontiguousarray(base), turn, (SIDE, SIDE), flags=cv2.INTER_LINEAR, borderValue=paper.tolist()
                )
            )
        )
    return varied
