"""The page: same pixels every time, the blend built anew is the library's, counts and reasons are exact."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from kit import FIXTURES, SKETCHES, difference, small

from render.browser import Browser
from render.painting import Outcome
from render.pixels import coverage, decode
from render.settings import PATCHES, RenderSettings

POPPY = (FIXTURES / "sketches/poppy.js").read_text()


@pytest.fixture(scope="module")
def swiftshader():
    """Two browsers on the stock rasterizer: with the blend program built anew, and with the library's own."""
    both = [Browser(RenderSettings(rasterizer="swiftshader", without=without)) for without in ((), ("blend",))]
    for one in both:
        one.start()
    yield both
    for one in both:
        one.kill()


# ---- determinism ------------------------------------------------------------------------------------------------
def test_same_sketch_and_seed_give_the_same_bytes_in_any_order_and_any_browser(browser):
    source = POPPY
    first = browser.paint(source, 7)
    browser.paint(small("Math.random = null; Array.prototype.push = null;"), 1)
    browser.paint("function setup(){", 1)
    browser.paint(small("while (random() < 0.9) noise(random()); throw new Error('out');"), 3)
    again = browser.paint(source, 7)
    second_browser = Browser(RenderSettings(), index=1)
    second_browser.start()
    try:
        elsewhere = second_browser.paint(source, 7)
    finally:
        second_browser.kill()
    assert first.painted
    assert first.png == again.png == elsewhere.png
    assert (first.shapes, first.worker, elsewhere.worker) == (again.shapes, 0, 1)


def test_seeds_differ_in_all_their_bits(browser):
    source = small()
    seeds = [0, 1, 2, 2**31, 2**32, 2**32 + 1, 2**52]
    paintings = {browser.paint(source, seed).png for seed in seeds}
    assert len(paintings) == len(seeds)


def test_unseeded_chance_and_clocks_repeat(browser):
    source = small(
        "const t = [Date.now(), new Date().getTime(), performance.now(), millis(), Math.random(), random(), "
        "noise(0.3), randomGaussian(), hour(), new Date(0).getHours()]; throw new Error(t.join(' '));"
    )
    one, two = (browser.paint(source, 5) for _ in range(2))
    assert one.errors == two.errors
    assert "176722560000" in one.errors[0]


@pytest.mark.parametrize("kind", ["llvmpipe", "swiftshader"])
def test_both_rasterizers_paint_with_every_patch(kind):
    one = Browser(RenderSettings(rasterizer=kind))
    one.start()
    try:
        painting = one.paint(POPPY, 7)
        again = one.paint(POPPY, 7)
    finally:
        one.kill()
    assert kind in one.info["renderer"].lower()
    assert (one.info["rasterizer"], sorted(one.info["patches"]), one.info["warning"]) == (kind, sorted(PATCHES), "")
    assert painting.painted
    assert painting.png == again.png


def test_blend_paints_on_every_rasterizer_what_the_library_paints_on_the_stock_one(browser, swiftshader):
    """But for the borders of shapes, where the library's derivatives are undefined (see blend.js)."""
    ours, librarys = swiftshader
    for name in ("poppy", "rose"):
        source = (FIXTURES / f"sketches/{name}.js").read_text()
        wanted = librarys.paint(source, 7).png
        assert ("blend" in ours.info["patches"], "blend" in librarys.info["patches"]) == (True, False)
        apart = difference(ours.paint(source, 7).png, wanted)
        assert apart.mean() < 0.06, name
        assert (apart > 1).mean() < 0.01, name
        elsewhere = difference(browser.paint(source, 7).png, wanted)
        assert elsewhere.mean() < 0.25, name
        assert (elsewhere > 1).mean() < 0.02, name


@pytest.mark.parametrize(
    "body",
    [
        'brush.fill("#000000", 255); brush.circle(30, 20, 50); brush.fill("#ffffff", 255); brush.circle(20, 30, 40)',
        "background(20); brush.fill(20, 40, 250, 255); brush.circle(10, 10, 50)",
        "clear(); brush.fill(250, 240, 10, 120); brush.circle(10, 10, 50)",
    ],
)
def test_blend_holds_for_extreme_pigments_and_papers(swiftshader, body):
    ours, librarys = swiftshader
    apart = difference(ours.paint(small(body), 3).png, librarys.paint(small(body), 3).png)
    assert apart.mean() < 0.2
    assert (apart > 1).mean() < 0.02


def test_blend_is_the_librarys_where_no_derivative_is_taken():
    """Brush strokes: the formulas alone."""
    everything = RenderSettings(methods="all")
    source = """function setup() { createCanvas(200, 200, WEBGL) }
function draw() {
  background(250, 244, 230);
  brush.set("marker", "#204080", 6); brush.line(-80, -60, 80, 60);
  brush.set("HB", "#902020", 9); brush.circle(0, 0, 70);
}"""
    pngs = []
    for without in ((), ("blend",)):
        one = Browser(replace(everything, without=without))
        one.start()
        try:
            pngs.append(one.paint(source, 3).png)
        finally:
            one.kill()
    apart = difference(*pngs)
    assert apart.max() <= 4
    assert (apart > 0).mean() < 0.003


def test_changed_shader_text_falls_back_with_a_warning(browser, monkeypatch):
    server = browser._server
    library = server._files["/p5.brush.js"]
    text = library.replace(b"const float EDGE_MIN=0.05", b"const float EDGE_MIN=0.06")
    assert text != library
    monkeypatch.setitem(server._files, "/p5.brush.new.js", text)
    monkeypatch.setattr(server, "_html", server._html.replace("/p5.brush.js", "/p5.brush.new.js"))
    assert browser.paint(small(), 1).painted
    assert "blend" not in browser.info["patches"]
    assert "not the one that is known" in browser.info["warning"]
    monkeypatch.undo()
    assert browser.paint(small(), 1).painted
    assert ("blend" in browser.info["patches"], browser.info["warning"]) == (True, "")


# ---- what a painting carries ------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", SKETCHES, ids=lambda path: path.stem)
def test_seed_sketches_paint(browser, path):
    painting = browser.paint(path.read_text(), 7)
    assert painting.outcome is Outcome.PAINTED, painting.detail
    assert painting.finished
    assert painting.errors == ()
    assert (painting.width, painting.height) == (600, 600)
    assert 9 <= painting.shapes <= 30
    assert 0.1 < painting.coverage < 0.6
    assert painting.coverage == coverage(painting.png)
    assert decode(painting.png).shape == (600, 600, 3)
    assert {"load", "run", "read", "total", "cpu"} <= painting.timings.keys()
    assert painting.timings["cpu"] > 0


def test_coverage_is_the_share_away_from_the_modal_colour():
    image = np.full((100, 100, 3), (250, 246, 233), np.uint8)
    image[:30] = (251, 247, 234)
    image[30:50, :50] = (200, 100, 100)
    image[60:62] = (235, 230, 215)  # nearer than 32: still paper
    assert coverage(image) == pytest.approx(0.1)
    transparent = np.zeros((10, 10, 4), np.uint8)
    transparent[:3] = (0, 0, 255, 255)
    png = cv2.imencode(".png", transparent)[1].tobytes()
    assert coverage(png) == pytest.approx(0.3)
    assert tuple(decode(png)[9, 9]) == (255, 255, 255)


def test_counters_count_what_laid_pigment(browser):
    body = """
    for (let i = 0; i < 3; i++) {
      brush.beginShape(); brush.vertex(-50, -50); brush.vertex(50, -50); brush.vertex(40, 60); brush.vertex(-40, 50);
      brush.endShape(true);
    }
    brush.circle(1e5, 1e5, 20);            // far off the canvas
    brush.noFill();
    brush.circle(0, 0, 30);                // no fill, no stroke
    brush.beginShape(); brush.vertex(0, 0); brush.vertex(9, 9); brush.vertex(0, 9); brush.endShape(true);
    """
    painting = browser.paint(small(body), 2)
    assert (painting.shapes, painting.vertices, painting.circles) == (4, 12, 1)


def test_error_after_pigment_leaves_a_partial_painting_with_its_line(browser):
    painting = browser.paint(small("\n\n  undefinedName.x = 1;\n  brush.circle(50, 50, 50);"), 2)
    assert painting.painted
    assert not painting.finished
    assert painting.errors == ("line 11: ReferenceError: undefinedName is not defined",)
    assert painting.shapes == 1


@pytest.mark.parametrize(
    ("source", "reason", "line", "said"),
    [
        ("function setup() {\n  createCanvas(100, 100, WEBGL);\n  null.x;\n}", "throws", 3, "TypeError"),
        ("let a = 1;\nmissing();\nfunction setup() {}", "throws", 2, "missing is not defined"),
        (
            "function setup() {\n  createCanvas(100, 100, WEBGL)\n}\nfunction draw() {\n  brush.endShape();\n}",
            "throws",
            5,
            "beginShape",
        ),
        ("function setup() { const f = () => f(); f(); }", "throws", 1, "RangeError"),
        ("function setup() { throw { toString() { throw 1 } } }", "throws", None, "cannot be shown"),
        ("function setup() {\n  let x = ;\n}", "syntax_error", 2, "Unexpected token"),
        ("function setup() {\n  var a = 010;\n}", "syntax_error", 2, "Octal"),
        ("})();} alert(1); with({}){(function(){", "syntax_error", 1, "Unexpected token"),
        ("}}}); studio.refusal = 1; ({a(){({b(){", "syntax_error", 1, "Unexpected token"),
        ("function draw() { brush.circle(0, 0, 9) }", "no_setup", None, ""),
        ("", "no_setup", None, ""),
        ("function setup() {\n  createCanvas(100, 100);\n}", "not_webgl", 2, ""),
        ("function setup() {\n  createCanvas(100, 100, P2D);\n}", "not_webgl", 2, ""),
        ("function setup() {}", "not_webgl", None, ""),
        ("function setup() {\n  createCanvas(4000, 4000, WEBGL);\n}", "canvas_size", 2, "2048"),
        ("function setup() { createCanvas(2000, 99999, WEBGL) }", "canvas_size", 1, ""),
        ("function setup() { createCanvas(NaN, 10, WEBGL) }", "canvas_size", 1, ""),
        ("function setup() { createCanvas(600, 600, WEBGL); resizeCanvas(9000, 9000) }", "canvas_size", 1, ""),
        (
            "function setup() { createCanvas(100, 100, WEBGL) }\nfunction draw() { background(200, 30, 30) }",
            "no_painting",
            None,
            "",
        ),
        (
            "function setup() { createCanvas(600, 600, WEBGL); brush.fill('red'); brush.circle(0, 0, 3) }",
            "blank",
            None,
            "0.00",
        ),
    ],
)
def test_faults_of_the_sketch_have_their_reason_and_line(browser, source, reason, line, said):
    painting = browser.paint(source, 1)
    assert (painting.outcome, painting.reason) == (Outcome.REJECTED, reason), painting
    assert painting.line == line
    assert said in painting.detail


def test_first_refused_use_decides_even_when_it_is_caught(browser):
    painting = browser.paint(small("try { text('hi', 0, 0) } catch (e) {}\ntry { fetch('x') } catch (e) {}"), 1)
    assert (painting.reason, painting.line) == ("text", 9)
    assert painting.detail.startswith("text ")
