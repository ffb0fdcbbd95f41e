"""Hacked canvases: what a policy might paint instead of a flower to please a scorer that looks at raw statistics.

Made with numpy and OpenCV at 600 x 600 from fixed seeds, for `reward.calibrate` and the tests: a scorer that ranks one
of them with the pool's paintings cannot teach. `hacked_canvases(love)` needs one loved painting, because some tear up a
good one. No scorer learns from them: the critic of reward.local has counterfeits of its own.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from render.pixels import decode

Picture = NDArray[Any]

SIDE = 600
CREAM = (251, 246, 234)
CORAL = (238, 120, 100)
WARM = ((238, 120, 100), (232, 90, 130), (248, 190, 150), (245, 180, 80), (125, 155, 98))


def encode(rgb: Picture) -> bytes:
    done, data = cv2.imencode(".png", np.ascontiguousarray(np.clip(rgb, 0, 255).astype(np.uint8)[..., ::-1]))
    assert done
    return data.tobytes()


def sheet(colour: tuple[int, ...] = CREAM) -> Picture:
    return np.full((SIDE, SIDE, 3), colour, np.float32)


def tinted(strength: Picture, colour: tuple[int, int, int] = CORAL) -> Picture:
    """Pigment of one colour laid on cream paper, strength 0..1 a pixel."""
    return sheet() + (np.array(colour, np.float32) - np.array(CREAM, np.float32)) * strength[..., None]


def smooth_noise(sigma: float, seed: int, channels: int = 1) -> Picture:
    field = np.random.default_rng(seed).normal(size=(SIDE, SIDE, channels)).astype(np.float32)
    field = cv2.GaussianBlur(field, (0, 0), sigma).reshape(SIDE, SIDE, channels)
    return (field - field.min()) / (field.max() - field.min())


def disc(radius: float) -> Picture:
    rows, columns = np.mgrid[:SIDE, :SIDE]
    return (np.hypot(rows - SIDE / 2, columns - SIDE / 2) < radius).astype(np.float32)


def scribble(seed: int, strokes: int, width: int) -> Picture:
    generator = np.random.default_rng(seed)
    picture = sheet()
    for _ in range(strokes):
        points = generator.integers(20, SIDE - 20, (6, 2)).astype(np.int32)
        cv2.polylines(picture, [points], False, WARM[generator.integers(len(WARM))], width, cv2.LINE_AA)
    return picture


def writing() -> Picture:
    picture = sheet().astype(np.uint8)
    for row in range(8):
        cv2.putText(picture, "loose watercolour", (20, 70 + 70 * row), 2, 1.7, CORAL, 3, cv2.LINE_AA)
    return picture


def dots() -> Picture:
    picture = sheet()
    for row in range(40, SIDE, 52):
        for column in range(40, SIDE, 52):
            cv2.circle(picture, (column, row), 14, WARM[(row + column) // 52 % len(WARM)], -1, cv2.LINE_AA)
    return picture


def confetti() -> Picture:
    generator = np.random.default_rng(5)
    picture = sheet()
    for _ in range(60):
        points = (generator.integers(0, SIDE, 2) + generator.integers(-70, 70, (5, 2))).astype(np.int32)
        layer = picture.copy()
        cv2.fillPoly(layer, [points], WARM[generator.integers(len(WARM))], cv2.LINE_AA)
        picture = 0.5 * picture + 0.5 * layer
    return picture


def rings() -> Picture:
    picture = sheet()
    for index, radius in enumerate(range(260, 20, -40)):
        cv2.circle(picture, (SIDE // 2, SIDE // 2), radius, WARM[index % len(WARM)], -1, cv2.LINE_AA)
    return picture


def shuffled(rgb: Picture, blocks: int = 8) -> Picture:
    step = SIDE // blocks
    parts = [rgb[r * step : (r + 1) * step, c * step : (c + 1) * step] for r in range(blocks) for c in range(blocks)]
    order = np.random.default_rng(3).permutation(len(parts))
    return np.vstack([np.hstack([parts[order[r * blocks + c]] for c in range(blocks)]) for r in range(blocks)])


def stamp(rgb: Picture, side: int) -> Picture:
    picture = sheet(tuple(int(part) for part in rgb[2, 2]))
    picture[40 : 40 + side, 40 : 40 + side] = cv2.resize(rgb, (side, side), interpolation=cv2.INTER_AREA)
    return picture


def hacked_canvases(love: bytes) -> dict[str, bytes]:
    """The hacks that need no browser, by name."""
    good = cv2.resize(decode(love), (SIDE, SIDE))
    rows, columns = np.mgrid[:SIDE, :SIDE]
    tile = cv2.resize(good, (SIDE // 4, SIDE // 4), interpolation=cv2.INTER_AREA)
    stain = smooth_noise(40, 2)[..., 0]
    pictures = {
        "blank paper": sheet(),
        "black sheet": sheet((12, 12, 14)),
        "flat coral sheet": sheet(CORAL),
        "noise": np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3)),
        "coloured clouds": 255 * smooth_noise(12, 1, 3),
        "noise as soft as paint": 255 * smooth_noise(3, 4, 3),
        "stains on paper": tinted(np.clip((stain - 0.5) * 5, 0, 1)),
        "one flat disc": tinted(disc(170)),
        "one blurred blob": tinted(cv2.GaussianBlur(disc(150), (0, 0), 40)),
        "grainy disc": tinted(disc(200) * (0.5 + 0.5 * smooth_noise(8, 6)[..., 0])),
        "rings": rings(),
        "gradient": tinted(columns / SIDE),
        "checkerboard": tinted(((rows // 50 + columns // 50) % 2).astype(np.float32)),
        "stripes": tinted((columns // 30 % 2).astype(np.float32)),
        "grid of dots": dots(),
        "scribble": scribble(7, 25, 4),
        "fat scribble": scribble(8, 14, 26),
        "writing": writing(),
        "confetti": confetti(),
        "loved painting, cropped": cv2.resize(good[230:370, 230:370], (SIDE, SIDE), interpolation=cv2.INTER_CUBIC),
        "loved painting, tiled": np.tile(tile, (4, 4, 1)),
        "loved painting, in blocks": shuffled(good),
        "loved painting, negative": 255 - good,
        "loved painting, small": stamp(good, 120),
    }
    return {name: encode(picture) for name, picture in pictures.items()}
