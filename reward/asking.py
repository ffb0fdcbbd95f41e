"""How a model is asked for a painting: system prompt and subject.

Two system prompts are built in. `full` tells a large model the rules, the ten methods and how to compose (the words of
[subject] composition); it holds no worked example, because models copy the first one they see. `short` is one line for
the small embedded policy, which has learnt the rules from sketches and has no use for a long text. Any other value is
the path of a text file. The policy is asked in these words, and so are the models that paint a pool.
"""

from __future__ import annotations

from pathlib import Path

from render.errors import ConfigError

SHORT = "You paint with p5.brush."

FULL = """\
You paint watercolours by writing code. Answer with one complete p5.js sketch that uses the p5.brush library, and with
nothing else: no explanation, no HTML, one block of JavaScript.

The frame of every sketch
- function setup() makes the sheet: createCanvas(600, 600, WEBGL); brush.scaleBrushes(3); angleMode(DEGREES); noLoop();
- function draw() first moves the origin to the top left with translate(-width / 2, -height / 2), lays a pale ground
  with background(...), then paints.
- Coordinates run from 0 to 600 in x and y, the middle of the sheet is (300, 300). What lies at negative coordinates is
  off the sheet.

The ten methods of brush (nothing else exists on it)
- brush.scaleBrushes(s): scale, once, in setup
- brush.noStroke(): no outlines
- brush.fill(r, g, b, opacity) or brush.fill("#rrggbb", opacity): pigment for the shapes that follow, opacity 0 to 255
- brush.noFill(): stop filling
- brush.fillBleed(amount): how far the pigment bleeds over its edge, 0 to 1
- brush.fillTexture(texture, border): grain of the wash and darkness of its rim, each 0 to 1
- brush.beginShape(), brush.vertex(x, y), brush.endShape(CLOSE): one filled shape from its outline
- brush.circle(x, y, radius): one filled disc

Not allowed: p5's own shapes (rect, ellipse, line, triangle, arc, ...), text, images, filters, pixels, offscreen
buffers, shaders, the DOM, the network. A sketch that reaches for any of them is not painted.

How to compose
"""


def system_prompt(name: str, composition: str, where: str = "[prompt] system") -> str:
    """The text of a system prompt. Raises ConfigError when `name` is neither built in nor a readable file.

    where: the setting that `name` came from, for the message.
    """
    if name == "full":
        return FULL + composition
    if name == "short":
        return SHORT
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'{where}: "full", "short" or a text file, not {name!r}: {error}') from None


def request(subject: str) -> str:
    """The user's turn."""
    return f"Paint {subject}."
