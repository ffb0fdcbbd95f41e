"""The static look against the page, in real Chromium: what it refuses the page refuses too, honest sketches paint."""

from __future__ import annotations

import random

from corpus import HONEST, LEFT_TO_PAGE, PAINT, REFUSED

from render.browser import Browser
from render.painting import Outcome
from render.serve import read_api
from render.settings import TEN_METHODS
from render.sketch import look

API = read_api()
# Reasons that the page gives in other words: it parses first, and a call of a missing setup throws.
OTHER_WORDS = {"truncated": {"syntax_error"}, "no_setup": {"throws"}}


def test_honest_sketches_paint(browser: Browser) -> None:
    for name, source in HONEST:
        painting = browser.paint(source, 1)
        assert painting.outcome is Outcome.PAINTED, (name, painting.reason, painting.detail, painting.errors)


def test_the_page_refuses_the_corpus_for_the_same_reasons(browser: Browser) -> None:
    for name, source, reason in REFUSED + LEFT_TO_PAGE:
        painting = browser.paint(source, 1)
        assert painting.outcome is Outcome.REJECTED, name
        assert painting.reason in {reason, *OTHER_WORDS.get(reason, ())}, (name, painting.reason, painting.detail)


STATEMENTS = f"""
{PAINT}
brush.noStroke(); {PAINT}
background(250);
translate(3, 4)
const a = random([1, 2]), b = [a / 2 / 1];
flower();
helper(1)
[1, 2].forEach((x) => helper(x));
const o = {{ text: 1, rect() {{}} }}; o.rect();
text('a', 0, 0);
rect(0, 0, 9, 9)
const g = createGraphics(9, 9);
filter(1);
brush.spray(1);
if (width > 1e4) {{ text('a', 0, 0); }}
width < 1e4 || rect(0, 0, 9, 9);
const late = () => image(1);
try {{ brush.pick('a'); }} catch (error) {{}}
return;
throw new Error('stop');
nowhere.x = 1;
missing();
for (let i = 0; i < 2; i++) {{ helper(i); }}
{{ let rect = (x) => x; rect(1); }}
var ellipse; ellipse = helper;
ellipse(0, 0, 9, 9);
const title = document.title
brush['fill']('#333333', 200);
const ink = brush.fill;
await null;
const make = function text(x) {{ return x; }}; make(1);
push(); pop()
frameCount > 99 && fetch('a');
""".strip().splitlines()
TOP = """
const filter = (x) => x;
function rect(x) { return x; }
class Image { text() {} }
let text;
fetch('a');
const s = 'rect(1)'; // text(1)
const p = Math.sqrt(4) / 2;
missing();
if (1) { helper(1); }
""".strip().splitlines()


def composed(chance: random.Random) -> str:
    """A random sketch: statements of every kind, in any place and order."""
    setup = ["createCanvas(200, 200, WEBGL);", *chance.sample(STATEMENTS, k=chance.randint(0, 3))]
    draw = chance.sample(STATEMENTS, k=chance.randint(1, 5))
    parts = [
        "async function setup() {\n  " + "\n  ".join(setup) + "\n}",
        "async function draw() {\n  " + "\n  ".join(draw) + "\n}",
        f"function flower() {{ {PAINT} }}\nfunction helper(x) {{ if (x) {{ {PAINT} }} return x; }}",
        *chance.sample(TOP, k=2),
    ]
    chance.shuffle(parts)
    return "\n".join(parts)


def test_no_composed_sketch_is_refused_that_would_paint(browser: Browser) -> None:
    chance = random.Random(11)
    refused = 0
    while refused < 40:
        source = composed(chance)
        refusal = look(source, TEN_METHODS, API)
        if refusal is not None:
            refused += 1
            painting = browser.paint(source, 1)
            assert painting.outcome is Outcome.REJECTED, (refusal, source)
