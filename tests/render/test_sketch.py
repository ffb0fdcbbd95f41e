"""Finding the sketch in replies of every shape, and the static look on sources that are hard to judge by their text."""

from __future__ import annotations

import random

import pytest
from corpus import DRAW, GOOD, HONEST, LEFT_TO_PAGE, PAINT, REFUSED, SETUP

from render.painting import REJECTIONS
from render.serve import read_api
from render.settings import TEN_METHODS
from render.sketch import Refusal, find_sketch, look

API = read_api()
CODE = GOOD.strip("\n")
OTHER = CODE.replace("60", "61")
NO_SETUP = DRAW.strip("\n")


def seen(source: str, methods: tuple[str, ...] | str = TEN_METHODS) -> Refusal | None:
    return look(source, methods, API)


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        (CODE, CODE),
        (f"```js\n{CODE}\n```", CODE),
        (f"Here is it, don't wait:\n\n```javascript\n{CODE}\n```\nIt's `text`-free.\n", CODE),
        (f"```\n{CODE}\n```", CODE),
        (f"~~~js\n{CODE}\n~~~", CODE),
        (f"~~~~\n{CODE}\n~~~~~", CODE),
        (f"```JavaScript title=sketch.js\n{CODE}\n```", CODE),
        (f"```js\n{CODE}", CODE),
        (f"```js\n{CODE}```", CODE),
        (f"```js\n{CODE}\n``` And that's all of setup.", CODE),
        (f"```js {GOOD.replace(chr(10), ' ')}```", " " + GOOD.replace("\n", " ")),
        (f"```js\r\n{CODE}\r\n```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"), CODE),
        (f"```js\n{CODE}\n```\nor\n```js\n{OTHER}\n```", OTHER),
        (f"```js\n{CODE}\n```\nand in detail\n```js\n{NO_SETUP}\n```\n```js\nsetup();\n```", CODE),
        (f"```js\n{CODE}\n```\nNotes:\n```text\nfunction setup() is called once\n```", CODE),
        (f"```js\n{CODE}\n```js\n{OTHER}\n```", OTHER),
        (f"```js\n{NO_SETUP}\n```", NO_SETUP),
        (f"```p5-sketch\n{CODE}\n```", CODE),
        (f"<think>\nFirst `setup`.\n</think>\n```js\n{CODE}\n```", CODE),
        (f"<think>\n```js\n{OTHER}\n```\n</think>\n\n```js\n{CODE}\n```", CODE),
        (f"thoughts\n```js\n{OTHER}\n```\n</think>\n{CODE}", CODE),
        (f"<think>\nI will write\n```js\n{CODE}\n```", CODE),
        (f"<think>\nI'll begin.\n\n{CODE}", CODE),
        (f"Sure, here's the flower:\n\n{CODE}\n\nHope you like it, it's loose!", CODE),
        (f"// It's a flower\nlet petals = 5;\n{CODE}", f"// It's a flower\nlet petals = 5;\n{CODE}"),
        (f"```html\n<!DOCTYPE html>\n<script src='p5.js'></script>\n<script>{CODE}</script>\n```", CODE),
        (f"<html><body>\n<script src='p5.js'></script>\n<script type='module'>{CODE}</script></body>", CODE),
        (f"```html\n<html>\n<script>\n{CODE}", f"\n{CODE}"),
        (f"It's this page:\n<script>{SETUP}</script>\n<script>{DRAW}</script>", f"{SETUP}\n{DRAW}"),
    ],
)
def test_finds_the_sketch(reply: str, source: str) -> None:
    found = find_sketch(reply)
    assert found.source == source
    assert found.refusal is None
    first = next(line for line in source.split("\n") if line)
    assert found.line is not None
    assert any(first in line for line in reply.splitlines()[found.line - 1 : found.line + 3])


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ("", "holds no sketch"),
        ("I would paint a peach hibiscus, with setup and draw.", "holds no sketch"),
        ("<think>\nThe user wants a setup and a draw. I call createCanvas(600, 600, WEBGL) first", "holds no sketch"),
        (f"<think>\n```js\n{CODE}\n```\n</think>\nDone.", "only inside the think block"),
        ("```js\n\n```", "holds no sketch"),
        ("```bash\nnpm install p5\n```", "`bash`"),
        ("```html\n<script src='a.js'></script>\n```", "holds no sketch"),
    ],
)
def test_says_why_there_is_no_sketch(reply: str, detail: str) -> None:
    found = find_sketch(reply)
    assert found.source is None
    assert found.refusal is not None
    assert found.refusal.reason == "no_sketch"
    assert detail in found.refusal.detail


def test_a_sketch_cut_off_in_its_fence_is_truncated_and_a_whole_one_is_not() -> None:
    for end in range(1, len(CODE)):
        source = find_sketch(f"Here:\n```js\n{CODE[:end]}").source
        refusal = seen(source) if source else None
        if refusal is not None and refusal.reason == "truncated":
            assert refusal.line is not None
        if CODE[:end].count("{") != CODE[:end].count("}"):
            assert refusal is not None, CODE[:end]
            assert refusal.reason == "truncated", CODE[:end]
    assert seen(find_sketch(f"Here:\n```js\n{CODE}").source or "") is None


@pytest.mark.parametrize(("name", "source"), HONEST, ids=[name for name, _ in HONEST])
def test_lets_honest_sketches_pass(name: str, source: str) -> None:
    assert seen(source) is None


@pytest.mark.parametrize(("name", "source", "reason"), REFUSED, ids=[entry[0] for entry in REFUSED])
def test_refuses_with_reason_and_line(name: str, source: str, reason: str) -> None:
    refusal = seen(source)
    assert refusal is not None
    assert refusal.reason == reason
    assert refusal.reason in REJECTIONS
    assert refusal.detail
    assert "\n" not in refusal.detail
    marked = [number for number, line in enumerate(source.split("\n"), start=1) if "HERE" in line]
    assert refusal.line == (marked[0] if marked else None)


@pytest.mark.parametrize(("name", "source", "reason"), LEFT_TO_PAGE, ids=[entry[0] for entry in LEFT_TO_PAGE])
def test_leaves_to_the_page_what_it_cannot_know(name: str, source: str, reason: str) -> None:
    assert seen(source) is None


def test_methods_are_those_of_the_settings() -> None:
    source = f"{SETUP}function draw() {{ brush.vertx(1, 2); {PAINT} }}"
    refusal = seen(source)
    assert refusal is not None
    assert "brush.vertex" in refusal.detail
    assert seen(source, "all") is None
    assert seen(source, (*TEN_METHODS, "vertx")) is None
    fewer = tuple(name for name in TEN_METHODS if name != "noStroke")
    refusal = seen(GOOD, fewer)
    assert refusal is not None
    assert refusal.reason == "unknown_method"


def test_first_reason_in_the_order_of_the_gate() -> None:
    everything = "function draw() { createCanvas(9, 9); text('a'); rect(1); brush.spray(); "
    refusals = [seen(everything), seen(everything + "}"), seen(everything.replace("draw", "setup") + "}")]
    assert [refusal.reason for refusal in refusals if refusal] == ["truncated", "no_setup", "not_webgl"]


def test_never_raises_whatever_the_source() -> None:
    chance = random.Random(7)
    sources = [source for _, source, *_ in [*HONEST, *REFUSED, *LEFT_TO_PAGE]]
    for _ in range(1500):
        source = chance.choice(sources)
        for _ in range(chance.randint(1, 4)):
            at, size = chance.randrange(len(source) + 1), chance.randint(0, 12)
            piece = chance.choice(
                ["", "(", ")", "{", "}", "[", "]", "`", "${", "'", "/", "function ", "class ", "=>", "."]
            )
            source = source[:at] + piece + source[at + size :]
        refusal = seen(source)
        assert refusal is None or refusal.reason in REJECTIONS
        found = find_sketch(source)
        assert (found.source is None) == (found.refusal is not None)


def test_every_form_of_binding_setup_counts() -> None:
    body = f"{{ createCanvas(200, 200, WEBGL); {PAINT} }}"
    forms = [
        f"async function setup() {body}",
        f"const setup = function () {body};",
        f"let a = 1, setup = async () => {body};",
        f"var setup; setup = () => {body}",
        f"({{ setup }} = {{ setup() {body} }});",
        f"const [setup] = [() => {body}];",
        f"window.setup = () => {body};",
        f"Object.assign(window, {{ setup() {body} }});",
    ]
    assert [seen(form) for form in forms if getattr(seen(form), "reason", "") == "no_setup"] == []
