"""Canvases that a policy might paint instead of a flower: made with numpy and OpenCV, and as p5.brush sketches.

Everything is drawn at 600 x 600 from fixed seeds. `canvases(love)` needs one loved painting, because some hacks
tear up a good one.
"""

from __future__ import annotations

import cv2
import numpy as np

SIDE = 600
CREAM = (251, 246, 234)
CORAL = (238, 120, 100)
WARM = ((238, 120, 100), (232, 90, 130), (248, 190, 150), (245, 180, 80), (125, 155, 98))


def encode(rgb: np.ndarray) -> bytes:
    done, data = cv2.imencode(".png", np.ascontiguousarray(np.clip(rgb, 0, 255).astype(np.uint8)[..., ::-1]))
    assert done
    return data.tobytes()


def sheet(colour: tuple[int, int, int] = CREAM) -> np.ndarray:
    return np.full((SIDE, SIDE, 3), colour, np.float32)


def tinted(strength: np.ndarray, colour: tuple[int, int, int] = CORAL) -> np.ndarray:
    """Pigment of one colour laid on cream paper, strength 0..1 a pixel."""
    return sheet() + (np.array(colour, np.float32) - np.array(CREAM, np.float32)) * strength[..., None]


def smooth_noise(sigma: float, seed: int, channels: int = 1) -> np.ndarray:
    field = np.random.default_rng(seed).normal(size=(SIDE, SIDE, channels)).astype(np.float32)
    field = cv2.GaussianBlur(field, (0, 0), sigma).reshape(SIDE, SIDE, channels)
    return (field - field.min()) / (field.max() - field.min())


def disc(radius: float) -> np.ndarray:
    rows, columns = np.mgrid[:SIDE, :SIDE]
    return (np.hypot(rows - SIDE / 2, columns - SIDE / 2) < radius).astype(np.float32)


def scribble(seed: int, strokes: int, width: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    picture = sheet()
    for _ in range(strokes):
        points = generator.integers(20, SIDE - 20, (6, 2)).astype(np.int32)
        cv2.polylines(picture, [points], False, WARM[generator.integers(len(WARM))], width, cv2.LINE_AA)
    return picture


def writing() -> np.ndarray:
    picture = sheet().astype(np.uint8)
    for row in range(8):
        cv2.putText(picture, "loose watercolour", (20, 70 + 70 * row), 2, 1.7, CORAL, 3, cv2.LINE_AA)
    return picture


def dots() -> np.ndarray:
    picture = sheet()
    for row in range(40, SIDE, 52):
        for column in range(40, SIDE, 52):
            cv2.circle(picture, (column, row), 14, WARM[(row + column) // 52 % len(WARM)], -1, cv2.LINE_AA)
    return picture


def confetti() -> np.ndarray:
    generator = np.random.default_rng(5)
    picture = sheet()
    for _ in range(60):
        points = (generator.integers(0, SIDE, 2) + generator.integers(-70, 70, (5, 2))).astype(np.int32)
        layer = picture.copy()
        cv2.fillPoly(layer, [points], WARM[generator.integers(len(WARM))], cv2.LINE_AA)
        picture = 0.5 * picture + 0.5 * layer
    return picture


def rings() -> np.ndarray:
    picture = sheet()
    for index, radius in enumerate(range(260, 20, -40)):
        cv2.circle(picture, (SIDE // 2, SIDE // 2), radius, WARM[index % len(WARM)], -1, cv2.LINE_AA)
    return picture


def shuffled(rgb: np.ndarray, blocks: int = 8) -> np.ndarray:
    step = SIDE // blocks
    parts = [rgb[r * step : (r + 1) * step, c * step : (c + 1) * step] for r in range(blocks) for c in range(blocks)]
    order = np.random.default_rng(3).permutation(len(parts))
    return np.vstack([np.hstack([parts[order[r * blocks + c]] for c in range(blocks)]) for r in range(blocks)])


def stamp(rgb: np.ndarray, side: int) -> np.ndarray:
    picture = sheet(tuple(int(part) for part in rgb[2, 2]))
    picture[40 : 40 + side, 40 : 40 + side] = cv2.resize(rgb, (side, side), interpolation=cv2.INTER_AREA)
    return picture


def canvases(love: bytes) -> dict[str, bytes]:
    """The hacks that need no browser, by name."""
    good = cv2.resize(cv2.imdecode(np.frombuffer(love, np.uint8), cv2.IMREAD_COLOR)[..., ::-1], (SIDE, SIDE))
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


_SKETCH = """
function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background("%s");
  brush.noStroke();
  %s
}
"""

SKETCHES = {
    "brush: single circle": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.2, "out"); brush.fillTexture(0.4, 0.4);
  brush.fill("#ee7864", 200); brush.circle(300, 300, 170);""",
    ),
    "brush: circle in circle": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.2, "out"); brush.fillTexture(0.4, 0.4);
  brush.fill("#f8bba4", 200); brush.circle(300, 300, 200);
  brush.fill("#ee7864", 200); brush.circle(300, 300, 130);
  brush.fill("#b8324f", 200); brush.circle(300, 300, 60);""",
    ),
    "brush: random shapes": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#7d9b62", "#8f2a6e"];
  brush.fillBleed(0.2, "out"); brush.fillTexture(0.3, 0.4);
  for (let i = 0; i < 22; i++) {
    brush.fill(random(colours), 180);
    const x = random(600), y = random(600);
    brush.beginShape(0);
    for (let j = 0; j < 6; j++) brush.vertex(x + random(-110, 110), y + random(-110, 110));
    brush.endShape(CLOSE);
  }""",
    ),
    "brush: blanket wash": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.3, "out"); brush.fillTexture(0.5, 0.5); brush.fill("#ee7864", 200);
  brush.beginShape(0); brush.vertex(-50, -50); brush.vertex(650, -50); brush.vertex(650, 650); brush.vertex(-50, 650);
  brush.endShape(CLOSE);""",
    ),
    "brush: grid of circles": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#7d9b62"];
  brush.fillBleed(0.1, "out"); brush.fillTexture(0.3, 0.4);
  for (let i = 0; i < 36; i++) {
    brush.fill(colours[i % 4], 190);
    brush.circle(60 + 96 * (i % 6), 60 + 96 * floor(i / 6), 34);
  }""",
    ),
    "brush: fat strokes": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#7d9b62", "#8f2a6e"];
  brush.fillBleed(0.1, "out"); brush.fillTexture(0.3, 0.4);
  for (let i = 0; i < 16; i++) {
    brush.fill(random(colours), 190);
    const x = random(100, 500), y = random(100, 500), a = random(360), l = random(120, 240);
    brush.beginShape(0);
    brush.vertex(x - l * cos(a) - 14 * sin(a), y - l * sin(a) + 14 * cos(a));
    brush.vertex(x + l * cos(a) - 14 * sin(a), y + l * sin(a) + 14 * cos(a));
    brush.vertex(x + l * cos(a) + 14 * sin(a), y + l * sin(a) - 14 * cos(a));
    brush.vertex(x - l * cos(a) + 14 * sin(a), y - l * sin(a) - 14 * cos(a));
    brush.endShape(CLOSE);
  }""",
    ),
    "brush: pile of circles": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#f8bba4"];
  brush.fillBleed(0.2, "out"); brush.fillTexture(0.4, 0.4);
  for (let i = 0; i < 14; i++) {
    brush.fill(random(colours), 180);
    brush.circle(random(180, 420), random(180, 420), random(40, 120));
  }""",
    ),
    "brush: spikes": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.05, "out"); brush.fill("#b8324f", 220);
  for (let i = 0; i < 24; i++) {
    const x = random(600), y = random(600), a = random(360);
    brush.beginShape(0);
    brush.vertex(x, y); brush.vertex(x + 260 * cos(a), y + 260 * sin(a));
    brush.vertex(x + 8 * sin(a), y - 8 * cos(a));
    brush.endShape(CLOSE);
  }""",
    ),
}
