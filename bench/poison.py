"""Sketches for the fault drill: good ones, and one for each way to harm a render farm."""

from __future__ import annotations

from dataclasses import dataclass

CANVAS = "createCanvas(240, 240, WEBGL); background(250); brush.noStroke();"
PAINT = "brush.fill('#c33', 90); brush.circle(0, 0, 60);"

GOOD = (
    f"function setup() {{ {CANVAS} }} function draw() {{ {PAINT} noLoop(); }}",
    f"""function setup() {{ {CANVAS} noLoop(); }}
function draw() {{
  brush.fill('#36a', 110); brush.fillBleed(0.2); brush.circle(-40, -30, 45);
  brush.fill('#e92', 90); brush.beginShape();
  for (let i = 0; i < 5; i++) brush.vertex(70 * cos(TWO_PI * i / 5), 30 + 60 * sin(TWO_PI * i / 5));
  brush.endShape(true);
}}""",
    f"""function setup() {{ {CANVAS} noLoop(); }}
function draw() {{
  for (let i = 0; i < 3; i++) {{
    brush.fill(random(['#274', '#5a3', '#183']), 100); brush.circle(random(-70, 70), random(-70, 70), random(15, 40));
  }}
}}""",
)


@dataclass(frozen=True)
class Poison:
    """A sketch that harms, and the reasons that are right for its rejection."""

    source: str
    reasons: frozenset[str]


def _in_setup(code: str, *reasons: str, head: str = "") -> Poison:
    return Poison(
        f"{head}function setup() {{ {CANVAS} {code} }} function draw() {{ {PAINT} noLoop(); }}", frozenset(reasons)
    )


POISON = {
    "loops in setup": _in_setup("while (true) {}", "too_slow"),
    "loops in draw": Poison(
        f"function setup() {{ {CANVAS} }} function draw() {{ {PAINT} while (true) {{}} }}", frozenset({"too_slow"})
    ),
    "loops in a promise": _in_setup("const again = () => Promise.resolve().then(again); again();", "too_slow"),
    "loops at top level": _in_setup("", "too_slow", head="while (true) {}\n"),
    "allocates typed arrays": _in_setup(
        "const kept = []; while (true) kept.push(new Float64Array(1 << 22).fill(1));", "too_big", "throws"
    ),
    "allocates arrays": _in_setup("const kept = []; while (true) kept.push(new Array(1e5).fill(0.5));", "too_big"),
    "never resolves": Poison(
        f"async function setup() {{ {CANVAS} await new Promise(() => {{}}); }} function draw() {{ {PAINT} noLoop(); }}",
        frozenset({"too_slow"}),
    ),
    "is not JavaScript": _in_setup("let = = 3;", "syntax_error"),
    "throws": _in_setup("null.colour;", "throws"),
    "recurses without end": _in_setup("const again = () => again() + 1; again();", "throws"),
    "reaches for the network": _in_setup("fetch('http://127.0.0.1/');", "outside_access"),
    "calls what brush has not": _in_setup("brush.splatter(3);", "unknown_method"),
    "has no setup": Poison("const red = '#c33';", frozenset({"no_setup"})),
    "has a plain canvas": Poison(
        f"function setup() {{ createCanvas(240, 240); noLoop(); }} function draw() {{ {PAINT} }}",
        frozenset({"not_webgl", "throws"}),
    ),
    "has a huge canvas": Poison(
        f"function setup() {{ createCanvas(20000, 20000, WEBGL); noLoop(); }} function draw() {{ {PAINT} }}",
        frozenset({"canvas_size"}),
    ),
    "paints nothing": Poison(f"function setup() {{ {CANVAS} noLoop(); }}", frozenset({"no_painting"})),
}
