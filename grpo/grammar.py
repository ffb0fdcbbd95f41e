"""A procedural grammar of p5.brush flower sketches: what the small policy knows before it is taught any taste.

Every sketch is one whole p5 + p5.brush program over the ten methods: a 600 x 600 WEBGL canvas, named decisions in
`const` lines at the top, then a few helper functions and loops that turn the decisions into 4 to 33 filled shapes.
`draw_decisions` draws every decision from a wide list, good and bad alike, so the grammar's own taste is mediocre by
construction; `write_sketch` turns decisions into source. As with people, decisions hang together: every sketch is by
one of a few hands (HANDS), each with habits that it follows more often than not. Few, early tokens decide what a
painting looks like and whose hand it is, which keeps credit assignment easy for reinforcement learning. A petal is the
polar curve

    r(t) = size * profile(t),  angle(t) = angle + spread * cos(t),  t = 0..180 degrees,

with one of five profiles (see PROFILES). Left out: everything outside the ten methods, strokes, hatching, noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

SUBJECTS = (
    "a peach hibiscus in loose watercolour",
    "a coral poppy in loose watercolour",
    "a yellow cosmos in loose watercolour",
    "a pink camellia in loose watercolour",
    "a magenta anemone in loose watercolour",
    "a wild rose in loose watercolour",
)

GROUNDS = (
    "#fbf6ea", "#f8f1e1", "#f4ead5", "#faf7f2", "#efe6da", "#e3ddd2", "#d8d2c4", "#c4c4c0", "#b9bcae", "#a39d94",
    "#84898f", "#6b6a72", "#d9c3a5", "#c6d4dc", "#e6c9c4",
)  # fmt: skip

# Petal colours from the outer wash to the heart. The first colour announces the family; every place has three shades.
PALETTES = (
    (("#fab98f", "#f8ad80", "#f5a278"), ("#f28f79", "#ef7f6b", "#f39a6f"), ("#d9536a", "#c9405c", "#dd5f4e")),
    (("#f79a80", "#f58a7c", "#f8a58c"), ("#ec6a5e", "#e75a62", "#f07a55"), ("#b8324f", "#c23a3f", "#a82f55")),
    (("#f6a9bd", "#f39ab2", "#f7b3bd"), ("#e8799b", "#e2688c", "#ee8ba0"), ("#b8356f", "#a92c62", "#c44a5c")),
    (("#f9d06f", "#f7c65c", "#fad884"), ("#f5ae53", "#f2a145", "#f6b96a"), ("#d9663b", "#cf5540", "#e07a35")),
    (("#ea8dba", "#e37eae", "#ee9fc1"), ("#d2549a", "#c9488c", "#da66a0"), ("#8f2a6e", "#a3327a", "#7d2563")),
    (("#c9b8a0", "#bba98f", "#b0a07f"), ("#8f7d62", "#84735c", "#7a6a4f"), ("#544a3a", "#4b4436", "#5d4f3c")),
    (("#a9bcc9", "#9db0c2", "#b4c3c9"), ("#6f8aa3", "#627f9b", "#7d90a0"), ("#36506b", "#2f455f", "#41566b")),
    (("#b9b39a", "#c2bb8f", "#a8a98a"), ("#8a8a55", "#7d8450", "#96904f"), ("#4d5230", "#454a2e", "#5a5a2f")),
    (("#9be36a", "#7fe0d0", "#f7ef4e"), ("#7a4be0", "#e03bd0", "#2f6bff"), ("#ff5a1f", "#12c24a", "#e01f3f")),
    (("#8d8791", "#9a8f99", "#7f7d8a"), ("#5f5368", "#6a5866", "#544c5f"), ("#2d2735", "#35283a", "#26232e")),
)  # fmt: skip

LEAF_COLOURS = (
    "#8fae6b", "#7d9b62", "#9bb67c", "#6b8f5e", "#a7b86a", "#5f7f6a", "#8a8a6a", "#6f6a52", "#4a5a4a", "#7a7f8a",
    "#a5743f", "#3f8f8a",
)  # fmt: skip

STAMEN_COLOURS = ("#f6c445", "#f2b134", "#fbe08a", "#e9a23b", "#8a5a2f", "#6f6f78", "#f7f3e6", "#5aa0c8")

PLACES = (120, 180, 240, 300, 360, 420, 480)

# The outline of a petal: the factor on its length at t = 0..180 degrees.
PROFILES = {
    "round": "sin(t) ** 0.6",
    "pointed": "(1 - abs(cos(t))) ** 0.7",
    "notched": "sin(t) ** 0.5 * (1 - 0.14 * sin(t) ** 16)",
    "wavy": "sin(t) ** 0.5 * (1 + 0.05 * sin(t * 7))",
    "ruffled": "sin(t) ** 0.4 * (0.94 + 0.06 * cos(t * 12))",
}
LAYERINGS = ("washes", "petal by petal", "patchwork", "blots")
HEARTS = ("none", "disc", "rays")
GREENS = ("none", "behind", "stem", "stem and leaves")
STAMENS = ("none", "ring", "column")
SPLASHES = ("none", "few", "many")


@dataclass(frozen=True)
class Decisions:
    """Everything in which two sketches of the grammar can differ.

    ground, leaf, stamen: colours "#rrggbb"; palette: three petal colours from outside to inside. centre: of the
    flower, canvas units (0..600, origin top left). petals: their number, in each of `layers` layers; reach: petal
    length, canvas units; spread: half width of a petal, degrees; tilt: angle of the first petal, degrees. opacity:
    0..255; bleed, grain: 0..1, as `brush.fillBleed` and `brush.fillTexture` take them. profile, layering, heart, green,
    stamens and splashes: which variant of the code is written (PROFILES, LAYERINGS, HEARTS, GREENS, STAMENS, SPLASHES).
    """

    ground: str
    palette: tuple[str, str, str]
    leaf: str
    stamen: str
    centre: tuple[int, int]
    petals: int
    layers: int
    reach: int
    spread: int
    tilt: int
    opacity: int
    bleed: float
    grain: float
    profile: str
    layering: str
    heart: str
    green: str
    stamens: str
    splashes: str


@dataclass(frozen=True)
class Hand:
    """The habits of one painter: for some decisions the values that it prefers. palettes: indices of PALETTES."""

    palettes: tuple[int, ...]
    grounds: tuple[str, ...]
    habits: dict[str, tuple[Any, ...]]


# Equally frequent: one careful, one gloomy, one timid, one loud. HABIT is how often a habit is followed; otherwise the
# whole list is open.
HABIT = 0.85
HANDS = (
    Hand((0, 1, 2, 3, 4), GROUNDS[:5], {
        "leaf": LEAF_COLOURS[:5], "stamen": STAMEN_COLOURS[:4], "place": (240, 300, 360), "petals": (5, 6),
        "layers": (2,), "reach": (195, 220), "spread": (38, 44, 50), "opacity": (160, 180, 200),
        "bleed": (0.06, 0.12, 0.18), "grain": (0.1, 0.2, 0.3), "profile": ("round", "notched", "wavy", "ruffled"),
        "heart": ("rays",), "layering": ("washes", "petal by petal"), "green": ("behind", "stem and leaves"),
        "stamens": ("column", "ring"), "splashes": ("none", "few"),
    }),
    Hand((5, 6, 7, 9), GROUNDS[8:12], {"opacity": (140, 160), "heart": ("none",), "stamens": ("none",)}),
    Hand((0, 2, 5, 6), GROUNDS[4:8], {"place": (120, 180, 420, 480), "layers": (1,), "reach": (120, 145)}),
    Hand((6, 7, 8), GROUNDS[12:], {"layering": ("blots", "patchwork"), "opacity": (220, 240), "bleed": (0.02, 0.3)}),
)  # fmt: skip


def draw_decisions(rng: numpy.random.Generator) -> Decisions:
    """Draws a hand, then every decision by that hand's habit or from the whole list. Grounds on which the petals would
    hardly be seen are left out, so that every sketch leaves a mark."""

    def one_of(values: Sequence[Any]) -> Any:
        return values[int(rng.integers(len(values)))]

    hand = one_of(HANDS)

    def by_habit(habit: Sequence[Any], values: Sequence[Any]) -> Any:
        return one_of(habit if habit and rng.random() < HABIT else values)

    def pick(name: str, values: Sequence[Any]) -> Any:
        return by_habit(hand.habits.get(name, ()), values)

    family = PALETTES[by_habit(hand.palettes, range(len(PALETTES)))]
    palette = (one_of(family[0]), one_of(family[1]), one_of(family[2]))

    def visible(grounds: Sequence[str]) -> list[str]:
        return [ground for ground in grounds if _distance(ground, palette[0]) > 90]

    return Decisions(
        ground=by_habit(visible(hand.grounds), visible(GROUNDS)),
        palette=palette,
        leaf=pick("leaf", LEAF_COLOURS),
        stamen=pick("stamen", STAMEN_COLOURS),
        centre=(pick("place", PLACES), pick("place", PLACES)),
        petals=pick("petals", (4, 5, 6, 7)),
        layers=pick("layers", (1, 2)),
        reach=pick("reach", (120, 145, 170, 195, 220)),
        spread=pick("spread", (20, 26, 32, 38, 44, 50)),
        tilt=one_of((0, 20, 54, 75, 90)),
        opacity=pick("opacity", (140, 160, 180, 200, 220, 240)),
        bleed=pick("bleed", (0.02, 0.06, 0.12, 0.18, 0.24, 0.3)),
        grain=pick("grain", (0, 0.1, 0.2, 0.3, 0.4, 0.55)),
        profile=pick("profile", tuple(PROFILES)),
        layering=pick("layering", LAYERINGS),
        heart=pick("heart", HEARTS),
        green=pick("green", GREENS),
        stamens=pick("stamens", STAMENS),
        splashes=pick("splashes", SPLASHES),
    )


def _distance(colour: str, other: str) -> float:
    """Euclidean distance of two colours "#rrggbb" in RGB, 0..442."""
    return math.dist(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]))


def sample_sketch(rng: numpy.random.Generator) -> str:
    """One complete sketch of mediocre taste; the same generator state gives the same text."""
    return write_sketch(draw_decisions(rng))


def write_sketch(decisions: Decisions) -> str:
    """The p5 + p5.brush source that carries the decisions out.

    Every helper is defined whether it is called or not: a short warm start does not learn that a call far below needs
    its definition.
    """
    outer, middle, inner = decisions.palette
    petal = _PETAL.format(
        step=15 if decisions.profile in ("round", "pointed") else 12, profile=PROFILES[decisions.profile]
    )
    parts = [
        f'const ground = "{decisions.ground}";',
        f'const palette = ["{outer}", "{middle}", "{inner}"];',
        f'const leaf = "{decisions.leaf}";',
        f'const stamen = "{decisions.stamen}";',
        f"const centre = {{ x: {decisions.centre[0]}, y: {decisions.centre[1]} }};",
        f"const petals = {decisions.petals};",
        f"const layers = {decisions.layers};",
        f"const reach = {decisions.reach};",
        f"const spread = {decisions.spread};",
        f"const tilt = {decisions.tilt};",
        f"const opacity = {decisions.opacity};",
        f"const bleed = {decisions.bleed};",
        f"const grain = {decisions.grain};",
        _SETUP,
        petal,
        _BLADE,
        _DROP,
        _DRAW,
        _GREEN[decisions.green],
        _LAYERS[decisions.layering],
        _HEART[decisions.heart],
        _STAMENS[decisions.stamens],
        _SPLASHES[decisions.splashes],
        "}",
    ]
    return "\n".join(part for part in parts if part)


_SETUP = """
function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
"""
_PETAL = """\
function petal(x, y, angle, size, half, colour, strength) {{
  brush.fill(colour, strength);
  brush.beginShape();
  for (let t = 0; t < 180; t += {step}) {{
    const r = size * {profile};
    const a = angle + half * cos(t);
    brush.vertex(x + r * cos(a), y + r * sin(a));
  }}
  brush.endShape(CLOSE);
}}
"""
_BLADE = """\
function blade(x, y, angle, size) {
  brush.fill(leaf, opacity);
  brush.beginShape();
  for (let t = 0; t < 180; t += 15) {
    const r = size * (1 - abs(cos(t)));
    const a = angle + 35 * cos(t) + 20 * sin(t);
    brush.vertex(x + r * cos(a), y + r * sin(a));
  }
  brush.endShape(CLOSE);
}
"""
_DROP = """\
function drop(angle, distance, size, colour, strength) {
  brush.fill(colour, strength);
  brush.beginShape();
  for (let t = 0; t < 360; t += 40) {
    brush.vertex(centre.x + distance * cos(angle) + size * cos(t), centre.y + distance * sin(angle) + size * sin(t));
  }
  brush.endShape(CLOSE);
}
"""
_DRAW = """\
function draw() {
  translate(-width / 2, -height / 2);
  background(ground);
  brush.noStroke();
  brush.fillBleed(bleed);
  brush.fillTexture(grain, 0.4);\
"""
_STEM = """\
  brush.fill(leaf, opacity);
  brush.beginShape();
  for (let t = -1; t <= 1; t += 0.2) {
    const d = 1 - abs(t);
    brush.vertex(centre.x + 30 * sin(d * 180) + 6 * t, 620 + (centre.y - 620) * d);
  }
  brush.endShape(CLOSE);\
"""
_GREEN = {
    "none": "",
    "behind": """\
  for (const a of [35, 150, 265]) {
    blade(centre.x + reach * 0.6 * cos(a), centre.y + reach * 0.6 * sin(a), a, reach * 0.75);
  }\
""",
    "stem": _STEM,
    "stem and leaves": _STEM
    + """
  for (const a of [325, 215]) {
    blade(centre.x + 25, centre.y / 2 + 300, a, 150);
  }\
""",
}
_LAYERS = {
    "washes": """\
  for (let k = 0; k < layers; k++) {
    for (let i = 0; i < petals; i++) {
      const size = reach * (1 - 0.3 * k) * (1 + 0.08 * sin(i * 137));
      const angle = tilt + i * 360 / petals + 7 * sin(i * 99);
      petal(centre.x, centre.y, angle, size, spread * (1 - 0.12 * k), palette[k], opacity);
    }
  }\
""",
    "petal by petal": """\
  for (let i = 0; i < petals; i++) {
    for (let k = 0; k < layers; k++) {
      const size = reach * (1 - 0.3 * k) * (1 + 0.08 * sin(i * 137));
      const angle = tilt + i * 360 / petals + 7 * sin(i * 99);
      petal(centre.x, centre.y, angle, size, spread * (1 - 0.12 * k), palette[k], opacity);
    }
  }\
""",
    "patchwork": """\
  for (let k = 0; k < layers; k++) {
    for (let i = 0; i < petals; i++) {
      petal(centre.x, centre.y, tilt + i * 360 / petals, reach * (1 - 0.2 * k), spread, palette[(i + k) % 3], opacity);
    }
  }\
""",
    "blots": """\
  for (let k = 0; k < layers; k++) {
    for (let i = 0; i < petals; i++) {
      const a = tilt + i * 360 / petals;
      brush.fill(palette[k], opacity);
      brush.circle(centre.x + reach * 0.6 * cos(a), centre.y + reach * 0.6 * sin(a), reach * (0.4 - 0.15 * k));
    }
  }\
""",
}
_HEART = {
    "none": "",
    "disc": "  drop(tilt, 0, reach * 0.2, palette[2], 200);",
    "rays": """\
  for (let i = 0; i < 5; i++) {
    petal(centre.x, centre.y, tilt + i * 72, reach * 0.42, spread * 0.7, palette[2], 200);
  }\
""",
}
_STAMENS = {
    "none": "",
    "ring": """\
  for (let i = 0; i < 5; i++) {
    drop(i * 72, reach * 0.14, 10, stamen, 230);
  }\
""",
    "column": """\
  for (let i = 1; i < 6; i++) {
    drop(tilt + 30, reach * 0.09 * i, 7 + i, stamen, 230);
  }\
""",
}
_SPLASHES = {
    "none": "",
    "few": """\
  for (let i = 0; i < 3; i++) {
    drop(i * 137, reach * 1.15, 8 + 4 * i, palette[0], 120);
  }\
""",
    "many": """\
  for (let i = 0; i < 6; i++) {
    drop(i * 137, reach * (0.8 + 0.1 * i), 6 + i, palette[i % 3], 140);
  }\
""",
}
