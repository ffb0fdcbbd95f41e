"""The seal: nothing but painting can be reached, and no honest sketch is lost to it."""

import re

import pytest
from kit import FIXTURES, small

from render.browser import Browser
from render.painting import Outcome
from render.serve import read_api
from render.settings import TEN_METHODS, RenderSettings

# ---- the seal ---------------------------------------------------------------------------------------------------
ATTACKS = {
    "outside_access": [
        "fetch('/p5.min.js')",
        "window.x = 1",
        "globalThis.document.title",
        "document.write('x')",
        "document.querySelector('canvas')",
        "new XMLHttpRequest()",
        "new WebSocket('ws://127.0.0.1')",
        "new Worker('x.js')",
        "navigator.userAgent",
        "location.href = 'http://127.0.0.1/'",
        "open('http://127.0.0.1/')",
        "alert(1)",
        "addEventListener('beforeunload', e => e.preventDefault())",
        "eval('1')",
        "(0, eval)('this')",
        "new Function('return this')()",
        "(() => {}).constructor('return this')()",
        "(async () => {}).constructor('return this')()",
        "(function* () {}).constructor('return this')()",
        "[].map.constructor('return this')()",
        "color(1).constructor.constructor('return document')()",
        "createVector().constructor.constructor('return document')()",
        "Reflect.construct(Object.getPrototypeOf(class {}).constructor, ['return this'])",
        "new p5(() => {})",
        "p5.prototype.createGraphics",
        "p5.instance",
        "save('a.png')",
        "loadJSON('a.json')",
        "createDiv('x')",
        "studio.errors",
        "new WebAssembly.Memory({ initial: 1 })",
        "new SharedArrayBuffer(8)",
        "defaultCanvas0.getContext('2d')",
    ],
    "text": ["text('flower', 0, 0)", "textSize(30)", "loadFont('a.ttf')"],
    "images": [
        "image(0, 0, 0)",
        "loadPixels()",
        "pixels[0] = 1",
        "filter(BLUR)",
        "get(1, 1)",
        "loadImage('data:image/png,')",
        "new Image()",
    ],
    "buffers": [
        "createGraphics(10, 10)",
        "drawingContext.clear(16384)",
        "createCanvas(200, 200, WEBGL).elt",
        "createCanvas(200, 200, WEBGL)['get' + 'Context']('2d')",
        "createFramebuffer()",
        "createShader('', '')",
        "new OffscreenCanvas(1, 1)",
        "canvas.toDataURL()",
    ],
    "primitives": [
        "rect(0, 0, 9, 9)",
        "circle(0, 0, 9)",
        "line(0, 0, 9, 9)",
        "beginShape()",
        "vertex(0, 0)",
        "box(9)",
        "ellipse(0, 0, 9, 9)",
    ],
    "unknown_method": [
        'brush["se" + "t"]("HB", "red", 1)',
        "brush.line(0, 0, 9, 9)",
        "brush.watercolor()",
        "const { stroke } = brush",
        "brush.load()",
    ],
}


@pytest.mark.parametrize(
    ("reason", "attack"), [(reason, attack) for reason, many in ATTACKS.items() for attack in many]
)
def test_refused_uses_are_rejected_by_name_and_line(browser, reason, attack):
    painting = browser.paint(small(f"\n  {attack};"), 1)
    assert (painting.outcome, painting.reason) == (Outcome.REJECTED, reason), (painting.detail, painting.errors)
    assert painting.line == 10
    assert len(painting.detail) > 8


def test_import_reaches_nothing(browser):
    for target in ("/p5.min.js", "/sketch.js", "data:text/javascript,globalThis.x=1", "http://127.0.0.1:1/a.js"):
        painting = browser.paint(
            small().replace("function setup() {", f"async function setup() {{ let m = await import('{target}');"), 1
        )
        assert painting.outcome is Outcome.REJECTED, target


def test_unknown_method_suggests_the_nearest(browser):
    assert "brush.fillBleed" in browser.paint(small("brush.filBleed(0.2)"), 1).detail
    assert "not allowed" in browser.paint(small("brush.hatch(3)"), 1).detail


@pytest.mark.parametrize(
    "tampering",
    [
        "Array.prototype.push = function () { throw 1 }",
        "Object.prototype.then = () => {}",
        "Function.prototype.call = () => 1",
        "Math.random = () => 0.5",
        "Promise.prototype.then = () => 1",
        "Error.prepareStackTrace = (e, frames) => frames",
        "p5.Vector.prototype.add = () => 1",
        "color(1).__proto__.toString = () => 'red'",
        "brush.fill = () => {}",
        "Object.defineProperty(brush, 'set', { value: 1 })",
        "Object.setPrototypeOf(brush, { set() {} }); brush.set()",
        "Array.prototype[Symbol.iterator] = function* () {}",
        "(function () { return this })().document",
        "arguments.callee.caller",
        "Object.getPrototypeOf(Date).now.call()",
    ],
)
def test_tampering_fails_and_leaves_the_painting_as_it_was(browser, tampering):
    clean = browser.paint(small(), 4)
    painting = browser.paint(small(f"{tampering};"), 4)
    assert not painting.finished
    assert len(painting.errors) == 1 or painting.reason == "unknown_method", painting
    if painting.painted:
        assert painting.png == clean.png


def test_stack_frames_give_nothing_away(browser):
    body = """
    const seen = [];
    Object.defineProperty(Object.create(Error), "x", { value: 1 });
    class Sly extends Error {}
    try { Sly.prepareStackTrace = (e, frames) => { seen.push(...frames.map(f => f.getThis())); return "x" } } catch {}
    try { brush.vertex({ valueOf() { throw new Sly("a") } }) } catch (e) { String(e.stack) }
    try { shuffle({ get length() { throw new Sly("b") } }) } catch (e) { String(e.stack) }
    if (seen.some(x => x !== undefined)) brush.LEAK;
    """
    painting = browser.paint(small(body), 4)
    assert painting.reason != "unknown_method", painting.detail


def test_no_object_that_a_sketch_can_hold_leads_to_the_page(browser):
    server = browser._server
    server.prepare(small("background(255)"), 1, browser.settings)
    driver = browser._driver
    driver.get(server.page())
    driver.execute_script("window.realFunction = Function;")
    driver.execute_async_script("studio.paint(arguments[arguments.length - 1])")
    found, seen = driver.execute_script((FIXTURES / "walk.js").read_text())
    assert seen > 500
    assert found == []


# Functions of p5's shader language, which mean nothing outside a shader.
SHADER_LANGUAGE = re.compile(
    r"(uniform|shared|varying|strands|[ib]?vec\d|mat\d|sampler|dFd)|(createMatrix|discard|break|instanceID|acosh|asinh"
    r"|atanh|cosh|sinh|tanh|clamp|exp2|fma|fwidth|inversesqrt|log2|mix|mod|roundEven|sign|smoothstep|step|trunc|cross"
    r"|distance|dot|equal|faceforward|length|normalize|notEqual|reflect|refract|bool)$"
)


def test_api_lists_cover_p5_and_name_nothing_twice(browser):
    api = read_api()
    groups = [
        api["p5"]["functions"],
        api["p5"]["constants"],
        api["p5"]["variables"],
        api["javascript"],
        *api["refused"].values(),
    ]
    names = [name for group in groups for name in group]
    assert sorted(set(names)) == sorted(names)
    browser.paint(small(), 1)
    public = browser._driver.execute_script(
        "const all = new Set();"
        "for (let o = window.p5.prototype; o && o !== Object.prototype; o = Object.getPrototypeOf(o))"
        "  Object.getOwnPropertyNames(o).forEach(name => all.add(name));"
        "return [...all].filter(name => !/^_|^constructor$/.test(name))"
    )
    assert [name for name in sorted(set(public) - set(names)) if not SHADER_LANGUAGE.match(name)] == []
    exported = browser._driver.execute_script("return Object.keys(window.brush)")
    assert set(TEN_METHODS) <= set(exported)


# ---- honest sketches --------------------------------------------------------------------------------------------
HONEST = dict(re.findall(r"// ==== (.*)\n((?:(?!// ====).*\n)*)", (FIXTURES / "honest.js").read_text()))


@pytest.mark.parametrize("name", HONEST)
def test_honest_sketches_are_not_lost(browser, name):
    painting = browser.paint(small(HONEST[name]), 1)
    assert painting.painted, (painting.reason, painting.detail)
    assert painting.finished, painting.errors


PAINT = "brush.fill('#903030', 220); brush.circle(0, 0, 60)"
WHOLE = {
    "async setup": small().replace(
        "function setup() {", "async function setup() { await new Promise(r => setTimeout(r, 50));"
    ),
    "async draw": small().replace("function draw() {", "async function draw() { await null;"),
    "assigned hooks": f"setup = function () {{ createCanvas(200, 200, WEBGL) }}\ndraw = () => {{ {PAINT} }}",
    "painted in setup": f"function setup() {{ const c = createCanvas(200, 200, WEBGL); c.parent('main'); {PAINT} }}",
    "top level p5": "const c = color(20, 90, 40); const k = random(3);\nfunction preload() {}\n" + small(),
    "strict": "'use strict';\n" + small() + "\nfunction mousePressed() { redraw() }",
    "byte order mark": "\ufeff" + small() + "\n// the end, without a newline",
    "old comment": small() + "\n<!-- an old comment",
}


@pytest.mark.parametrize("name", WHOLE)
def test_shapes_of_honest_sketches(browser, name):
    painting = browser.paint(WHOLE[name], 1)
    assert painting.painted, (painting.reason, painting.detail)
    assert painting.finished, painting.errors


def test_all_methods_open_the_whole_library():
    one = Browser(RenderSettings(methods="all"))
    one.start()
    try:
        painting = one.paint(
            small(
                'brush.set("HB", "#333", 4); brush.field("seabed"); brush.flowLine(-80, 0, 120, 0); brush.noField();'
                "brush.rect(-60, -60, 50, 40)"
            ),
            1,
        )
        refused = one.paint(small("rect(0, 0, 9, 9)"), 1)
        unknown = one.paint(small("brush.nonsense()"), 1)
    finally:
        one.kill()
    assert painting.painted, painting.detail
    assert painting.finished, painting.errors
    assert painting.shapes == 2
    assert (refused.reason, unknown.reason) == ("primitives", "unknown_method")
