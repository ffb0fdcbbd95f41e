"""The patch "mask": what the coverage rasterizer leaves is what a 2D canvas would have left."""

import math
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from kit import FIXTURES, small

from bench.compare import ssim
from render import serve
from render.browser import Browser
from render.errors import ConfigError
from render.pixels import decode
from render.settings import PATCHES, PROFILES, RenderSettings

SHAPES = small(
    'brush.fillTexture(0.5, 0.8); brush.fill("#204080", 160); rotate(0.4); scale(1.3, 0.8);'
    "const corners = [[-60, -50], [70, -30], [20, 10], [60, 60], [-30, 40]];"
    "brush.beginShape(); for (const [x, y] of corners) brush.vertex(x, y);"
    "brush.endShape(CLOSE)"
)


@pytest.fixture
def page(browser):
    """Run JavaScript on a fresh mask of 64 x 64: `m` is its context; `read()` gives its levels as rows."""

    def run(body: str) -> np.ndarray:
        browser.paint(small(), 1)
        levels = browser._driver.execute_script(
            "const m = new OffscreenCanvas(64, 64).getContext('2d');"
            "const polygon = (...p) => { m.beginPath(); m.moveTo(...p[0]); for (const q of p.slice(1)) m.lineTo(...q);"
            "  m.closePath(); };"
            "const disc = (x, y, r) => { m.beginPath(); m.moveTo(x + r, y); m.arc(x, y, r, 0, 7); m.fill(); };"
            "const erase = () => { m.globalCompositeOperation = 'destination-out'; };"
            "m.fillStyle = 'rgb(255 0 0 / 1)'; m.strokeStyle = 'rgb(255 0 0 / 1)';"
            f"{body}; return Array.from(m.read(0, 0, 64, 64))"
        )
        return np.array(levels, float).reshape(64, 64, 4)[:, :, 3]

    return run


def filled(*points: tuple[float, float]) -> str:
    return f"polygon({', '.join(str(list(point)) for point in points)}); m.fill()"


BOX = ((10, 20), (30, 20), (30, 50), (10, 50))


# ---- coverage ---------------------------------------------------------------------------------------------------
def test_whole_and_half_covered_pixels(page):
    levels = page(filled((10.5, 20), (30, 20), (30, 49.75), (10.5, 49.75)))
    wanted = np.zeros((64, 64))
    wanted[20:50, 10:30] = 255
    wanted[:, 10] /= 2
    wanted[49] *= 0.75
    assert np.abs(levels - wanted).max() <= 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_star_is_full_inside_whichever_way_it_is_drawn(page, turned):
    star = [(32 + 28 * math.sin(k * 4 * math.pi / 5), 32 - 28 * math.cos(k * 4 * math.pi / 5)) for k in range(5)]
    levels = page(filled(*(star[::-1] if turned else star)))
    wanted = np.zeros((64 * 8, 64 * 8), np.uint8)
    # cv2 fills by the even-odd rule: the hull of the crossings in the middle is added.
    cv2.fillPoly(wanted, [np.round(np.array(star) * 8 - 0.5).astype(int)], 255)
    inner = [(32 + 28 * 0.382 * math.sin(k * 2 * math.pi / 5 + math.pi / 5),
              32 - 28 * 0.382 * math.cos(k * 2 * math.pi / 5 + math.pi / 5)) for k in range(5)]  # fmt: skip
    cv2.fillPoly(wanted, [np.round(np.array(inner) * 8 - 0.5).astype(int)], 255)
    area = cv2.resize(wanted.astype(float), (64, 64), interpolation=cv2.INTER_AREA)
    assert levels[32, 32] == 255
    assert np.abs(levels - area).mean() < 2
    assert levels.sum() == pytest.approx(area.sum(), rel=0.02)


def test_what_lies_outside_the_canvas_changes_nothing_inside(page):
    levels = page(filled((-500, -300), (40, -300), (40, 25), (900, 25), (900, 400), (-500, 400)))
    assert (levels[:, :40] == 255).all()
    assert (levels[26:] == 255).all()
    assert (levels[:24, 41:] == 0).all()


def test_an_outline_has_its_width_on_every_side_and_miters_at_its_corners(page):
    levels = page(f"m.lineWidth = 4; m.fillStyle = 'rgb(255 0 0 / 0)'; {filled(*BOX)}; m.stroke()")
    wanted = np.zeros((64, 64))
    wanted[18:52, 8:32] = 255
    wanted[22:48, 12:28] = 0
    assert np.abs(levels - wanted).max() <= 1


def test_an_outline_is_stretched_by_the_map_it_is_drawn_through(page):
    levels = page("m.fillStyle = 'rgb(255 0 0 / 0)'; m.lineWidth = 2; m.setTransform(3, 0, 0, 1, 0, 0);"
                  "polygon([6, 20], [16, 20], [16, 50], [6, 50]); m.fill(); m.stroke()")  # fmt: skip
    assert (levels[30] > 127).sum() == 12  # two sides, each 2 wide times 3
    assert (levels[:, 32] > 127).sum() == 4  # two sides, each 2 wide


def test_a_sharp_corner_beyond_the_miter_limit_is_cut_off(page):
    levels = page("m.fillStyle = 'rgb(255 0 0 / 0)'; m.lineWidth = 4;"
                  "polygon([10, 30], [40, 31], [10, 32]); m.fill(); m.stroke()")  # fmt: skip
    assert levels[31, 45:].max() == 0


def test_a_polygon_of_very_many_points(page):
    levels = page("const p = []; for (let i = 0; i < 30000; i++) p.push([32 + 20 * cos(i), 32 + 20 * sin(i)]);"
                  .replace("cos(i)", "Math.cos(i * Math.PI / 15000)").replace("sin(i)", "Math.sin(i * Math.PI / 15000)")
                  + "polygon(...p); m.fill()")  # fmt: skip
    assert levels.sum() / 255 == pytest.approx(math.pi * 400, rel=0.01)


# ---- levels -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("style", "after"),
    [
        # As a canvas on a GPU gives them: each step rounded.
        ("rgb(255 0 0 / 1.5%)", [4, 8, 12, 16, 20, 24, 27, 30, 33, 36]),
        ("rgb(255 0 0 / 0.0055)", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        ("rgb(255 0 0 / 4.2%)", [11, 21, 31, 40, 49, 58, 66, 74, 82, 89]),
    ],
)
def test_layers_add_up_as_in_eight_bits(page, style, after):
    levels = [
        page(f"m.fillStyle = '{style}'; for (let i = 0; i <= {n}; i++) {{ {filled(*BOX)} }}")[30, 20] for n in range(10)
    ]
    assert levels == after


def test_erasing_goes_down_as_in_eight_bits(page):
    down = [102, 95, 89, 83, 77, 72, 67, 63, 59, 55, 51]
    start = f"m.fillStyle = 'rgb(255 0 0 / 40%)'; {filled(*BOX)}; erase(); m.fillStyle = 'rgb(255 0 0 / 0.0664)';"
    levels = [page(f"{start} for (let i = 0; i < {n}; i++) disc(20, 35, 9)")[35, 20] for n in range(len(down))]
    assert levels == down


def test_an_erased_disc_has_its_area_and_nothing_is_erased_twice(page):
    box = "polygon([2, 2], [62, 2], [62, 62], [2, 62]); m.fill(); erase();"
    whole = page(box).sum()
    levels = page(f"{box} disc(30.3, 31.7, 14); m.read(0, 0, 64, 64)")
    assert (whole - levels.sum()) / 255 == pytest.approx(math.pi * 14**2, rel=0.02)
    squashed = page(f"{box} m.setTransform(2, 0, 0, 0.5, 0, 0); disc(16, 64, 10)")
    assert (whole - squashed.sum()) / 255 == pytest.approx(math.pi * 10**2, rel=0.02)
    assert squashed[32, 14:50].max() == 0


def test_painting_over_what_was_erased_and_clearing(page):
    erased = f"{filled(*BOX)}; erase(); disc(20, 35, 30);"
    assert page(erased).max() == 0
    again = page(
        f"{erased} m.globalCompositeOperation = 'source-over'; m.fillStyle = 'rgb(255 0 0 / 50%)'; {filled(*BOX)}"
    )
    assert again[30, 20] == 128
    assert page(f"{filled(*BOX)}; m.clearRect(0, 0, 64, 64)").max() == 0


# ---- against real canvases --------------------------------------------------------------------------------------
def compared(settings: RenderSettings, source: str, attributes: str) -> np.ndarray:
    """One row for each mask that was handed over: see compare.js."""
    one = Browser(settings)
    one.start()
    try:
        server = one._server
        assert server is not None
        script = Path(__file__).with_name("compare.js").read_bytes()
        server._files["/compare.js"] = script
        before = f"window.realContext = OffscreenCanvas.prototype.getContext; window.realAttributes = {attributes};"
        server._files["/before.js"] = before.encode()
        tag = '<script nonce="NONCE" src="/{}.js"></script>'
        server._html = server._html.replace(tag.format("first"), tag.format("before") + tag.format("first"))
        server._html = server._html.replace(tag.format("mask"), tag.format("mask") + tag.format("compare"))
        painting = one.paint(source, 3)
        assert painting.painted, painting.detail
        return np.array(one._driver.execute_script("return studio.masks"), float)
    finally:
        one.kill()


def test_every_mask_is_that_of_a_canvas_with_16_bit_floats_to_a_level(browser):
    source = (FIXTURES / "sketches/rose.js").read_text()
    masks = compared(RenderSettings(), source, '{ colorType: "float16", willReadFrequently: true }')
    assert len(masks) == 48
    painted, total, absolute, largest = masks.T
    # That canvas has no strokes thinner than a pixel and no rounding to 8 bits.
    assert (absolute / painted).max() < 2
    assert abs(total.sum() / painted.sum()) < 1
    assert largest.max() < 40


class MaskOnStock(RenderSettings):
    """The stock set-up with nothing but the mask replaced."""

    def patches(self) -> tuple[str, ...]:
        return ("mask",)


def test_every_mask_is_that_of_the_stock_canvas_to_half_a_level():
    masks = compared(MaskOnStock(profile="stock"), SHAPES, "{}")
    painted, total, absolute, largest = masks.T
    assert len(masks) == 8
    assert absolute.sum() / painted.sum() < 0.6
    assert abs(total.sum() / painted.sum()) < 0.25
    assert largest.max() < 40


# ---- profiles ---------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def profiles():
    paintings = {}
    for name in PROFILES:
        one = Browser(RenderSettings(profile=name))
        one.start()
        try:
            paintings[name] = one.paint(SHAPES, 3)
            assert sorted(one.info["patches"]) == sorted(PROFILES[name])
            assert one.info["warning"] == ""
        finally:
            one.kill()
    return paintings


@pytest.mark.parametrize("name", ["fast", "exact"])
def test_a_profile_paints_what_stock_paints(profiles, name):
    picture, stock = decode(profiles[name].png), decode(profiles["stock"].png)
    assert ssim(picture, stock) > 0.985
    assert np.abs(picture.astype(float) - stock).mean() < 0.75
    assert profiles[name].coverage == pytest.approx(profiles["stock"].coverage, rel=0.03)


def test_shapes_vertices_and_chance_are_the_same_in_every_profile(profiles):
    counts = {(one.shapes, one.vertices, one.circles) for one in profiles.values()}
    assert counts == {(2, 5, 1)}
    source = small("throw new Error([random(), Math.random(), noise(3)].join(' '))")
    said = set()
    for without in ((), ("mask",), ("mask", "blend", "msaa", "float16")):
        one = Browser(RenderSettings(without=without))
        one.start()
        try:
            said.add(one.paint(source, 3).errors)
            assert set(one.info["patches"]) == set(PATCHES) - set(without)
        finally:
            one.kill()
    assert len(said) == 1


def test_an_unknown_patch_is_a_mistake_in_one_line():
    with pytest.raises(ConfigError, match="there is no patch 'masks'; the nearest is 'mask'"):
        Browser(replace(RenderSettings(), without=("masks",))).start()


def test_another_release_of_the_library_is_painted_without_the_mask_and_says_so(monkeypatch):
    monkeypatch.setattr(serve, "KNOWN_BRUSH", "0" * 64)
    one = Browser(RenderSettings())
    one.start()
    try:
        assert one.paint(small(), 1).painted
        assert sorted(one.info["patches"]) == ["blend", "float16", "msaa"]
        assert "patch mask is left out: it does not know this p5.brush" in one.info["warning"]
    finally:
        one.kill()
