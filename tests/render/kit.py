"""What the tests of the page and the farm share: a small sketch, the seed sketches, pixel differences, patience."""

import time
from pathlib import Path

import numpy as np

from render.pixels import decode

FIXTURES = Path(__file__).parents[1] / "fixtures"
SKETCHES = sorted((FIXTURES / "sketches").glob("*.js"))
SMALL = """function setup() {
  createCanvas(200, 200, WEBGL);
  brush.noStroke();
}
function draw() {
  background(250, 244, 230);
  brush.fill("#c8323c", 210);
  brush.circle(0, 0, 60);
  BODY
}"""


def small(body: str = "", *, top: str = "") -> str:
    """A sketch that paints one circle and then runs `body`, whose first line is line 9 of the sketch."""
    return top + SMALL.replace("BODY", body)


def difference(a: bytes, b: bytes) -> np.ndarray:
    """Largest difference over the channels, per pixel, of two PNGs."""
    return np.abs(decode(a).astype(int) - decode(b).astype(int)).max(axis=2)


def wait_until(holds: object, seconds: float = 30.0) -> None:
    assert callable(holds)
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.05)
