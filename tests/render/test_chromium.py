"""Kinds of GL: which are tried, what each must show, and that what was fallen back from is said in one line.

No GPU is needed: that an NVIDIA device is there is pretended, so that its kinds are really started and really fail.
"""

import base64
import subprocess
import sys
from dataclasses import replace

import cv2
import numpy as np
import psutil
import pytest
from kit import small

import render.browser
from render import backend, chromium
from render.browser import Browser, BrowserLost
from render.pixels import decode
from render.serve import STUDIO
from render.settings import PROFILES, RenderSettings

EGL_FILES = "__EGL_VENDOR_LIBRARY_FILENAMES"


def pretend_nvidia(monkeypatch, tmp_path):
    device = tmp_path / "nvidia0"
    device.touch()
    monkeypatch.setattr(chromium, "NVIDIA_DEVICES", (device,))


def alter(monkeypatch, name, **changes):
    monkeypatch.setitem(chromium.KINDS, name, replace(chromium.KINDS[name], **changes))


def started(settings, monkeypatch) -> tuple[dict, list[str], bool]:
    """info, the kinds in the order in which they were launched, and whether the browser paints."""
    launched = []
    launch = Browser._launch

    def note(self, binary, driver, kind):
        launched.append(kind)
        launch(self, binary, driver, kind)

    monkeypatch.setattr(Browser, "_launch", note)
    one = Browser(settings)
    try:
        one.start()
        return one.info, launched, one.paint(small(), 1).painted
    finally:
        one.kill()


# ---- the choice -------------------------------------------------------------------------------------------------
CPU = ("llvmpipe", "swiftshader")
GPU = ("nvidia-egl", "nvidia-vulkan")


@pytest.mark.parametrize(
    ("settings", "nvidia", "kinds"),
    [
        ({}, False, CPU),
        ({}, True, (*GPU, *CPU)),
        ({"backend": "gpu"}, True, (*GPU, *CPU)),
        ({"backend": "gpu"}, False, CPU),
        ({"backend": "cpu"}, True, CPU),
        ({"profile": "exact"}, True, (*GPU, *CPU)),
        ({"profile": "stock", "backend": "gpu", "rasterizer": "llvmpipe"}, True, ("stock",)),
        ({"rasterizer": "swiftshader"}, False, ("swiftshader",)),
        ({"rasterizer": "llvmpipe"}, True, ("llvmpipe",)),
    ],
)
def test_the_kinds_to_try_follow_from_settings_and_machine(settings, nvidia, kinds):
    assert backend.kinds_to_try(RenderSettings(**settings), nvidia) == kinds


@pytest.mark.parametrize("nvidia", [False, True])
@pytest.mark.parametrize("wanted", ["auto", "cpu", "gpu"])
def test_a_browser_that_replaces_another_is_tied_to_its_kind(wanted, nvidia):
    """As the farm ties it: by the rasterizer of the first."""
    for profile in PROFILES:
        settings = RenderSettings(profile=profile, backend=wanted)
        for kind in backend.kinds_to_try(settings, nvidia):
            assert backend.kinds_to_try(replace(settings, rasterizer=kind), nvidia) == (kind,)


def test_only_a_gpu_that_was_asked_for_is_missed():
    said = {
        name: backend.unmet(RenderSettings(backend=name), backend.kinds_to_try(RenderSettings(backend=name), False))
        for name in ("auto", "cpu", "gpu")
    }
    assert said["auto"] == said["cpu"] == ""
    assert "no NVIDIA device" in said["gpu"]
    assert backend.unmet(RenderSettings(backend="gpu"), (*GPU, *CPU)) == ""


def test_the_kind_to_rely_on_has_the_most_tries():
    assert backend.tries((*GPU, *CPU)) == {"nvidia-egl": 2, "nvidia-vulkan": 2, "llvmpipe": 4, "swiftshader": 2}
    assert backend.tries(CPU) == {"llvmpipe": 4, "swiftshader": 2}
    assert backend.tries(("nvidia-egl",)) == {"nvidia-egl": 4}


# ---- flags and environment --------------------------------------------------------------------------------------
def test_every_kind_but_stock_keeps_canvases_on_the_cpu_and_names_its_source(tmp_path):
    for name, kind in chromium.KINDS.items():
        assert kind.source
        assert kind.cpu_canvas == ("--disable-accelerated-2d-canvas" in chromium.flags(name, tmp_path)), name
    assert not chromium.KINDS["stock"].cpu_canvas


def test_stock_has_the_recipes_flags_and_none_of_ours(tmp_path):
    recipe = {"--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-sandbox"}
    flags = set(chromium.flags("stock", tmp_path))
    assert recipe <= flags
    assert "--no-sandbox" in flags
    assert {flag for flag in flags - recipe if "gpu" in flag or "accel" in flag} == {
        "--disable-gpu-process-crash-limit"
    }


def test_each_kind_loads_its_own_driver(tmp_path, monkeypatch):
    nvidia, mesa = tmp_path / "10_nvidia.json", tmp_path / "50_mesa.json"
    for file in (nvidia, mesa):
        file.touch()
    absent = tmp_path / "absent.json"
    alter(monkeypatch, "nvidia-egl", driver_files={EGL_FILES: (absent, nvidia)})
    alter(monkeypatch, "llvmpipe", driver_files={EGL_FILES: (mesa, nvidia)})
    for name, value in {"EGL_PLATFORM": "x11", "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "softpipe"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(EGL_FILES, raising=False)
    on_gpu, on_cpu = chromium.environment("nvidia-egl", tmp_path), chromium.environment("llvmpipe", tmp_path)
    assert on_gpu[EGL_FILES] == str(nvidia)
    assert not {"EGL_PLATFORM", "LIBGL_ALWAYS_SOFTWARE", "GALLIUM_DRIVER"} & on_gpu.keys()
    assert on_cpu[EGL_FILES] == str(mesa)
    assert on_cpu["GALLIUM_DRIVER"] == "llvmpipe"
    monkeypatch.setenv(EGL_FILES, "/a/place/of/its/own.json")
    assert chromium.environment("nvidia-egl", tmp_path)[EGL_FILES] == "/a/place/of/its/own.json"
    assert chromium.environment("llvmpipe", tmp_path)[EGL_FILES] == str(mesa)


def test_a_kinds_flags_reach_the_browser(browser):
    line = next(
        line for line in map(command_line, browser.pids()) if "--user-data-dir" in line and "--type" not in line
    )
    assert all(flag in line for flag in chromium.KINDS[browser.info["rasterizer"]].flags)


def command_line(pid):
    return " ".join(psutil.Process(pid).cmdline())


# ---- what a kind must show --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("renderer", "right"),
    [
        ("ANGLE (NVIDIA Corporation, NVIDIA L4/PCIe/SSE2, OpenGL ES 3.2)", {"nvidia-egl"}),
        ("ANGLE (NVIDIA, Vulkan 1.4.312 (NVIDIA NVIDIA GeForce RTX 5080 (0x00002C02)), NVIDIA)", {"nvidia-vulkan"}),
        ("ANGLE (Mesa/X.org, llvmpipe (LLVM 15.0.6 256 bits), OpenGL ES 3.2)", {"llvmpipe"}),
        ("ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)", {"swiftshader", "stock"}),
        ("ANGLE (Mesa, llvmpipe (LLVM 15.0.6), Vulkan 1.3)", {"llvmpipe"}),
        ("ANGLE (Intel, Mesa Intel(R) UHD Graphics 630 (CFL GT2), OpenGL ES 3.2)", set()),
    ],
)
def test_a_renderer_is_believed_by_its_own_kind_only(renderer, right):
    assert {name for name in chromium.KINDS if not backend.wrong_renderer(name, renderer)} == right


def test_an_accelerated_canvas_is_refused_but_for_stock():
    refused = {name for name in chromium.KINDS if backend.wrong_canvas(name, "enabled")}
    assert refused == set(chromium.KINDS) - {"stock"}
    assert not any(backend.wrong_canvas(name, "disabled_software") for name in chromium.KINDS)


def test_the_known_picture_is_drawn_right_and_one_wrong_pixel_is_seen(browser):
    renderer, pixels = browser._driver.execute_script(backend.PICTURE)
    assert renderer == browser.info["renderer"]
    assert backend.wrong_picture(pixels) == ""
    drawn = np.frombuffer(base64.b64decode(pixels), np.uint8).copy()
    drawn[4 * (64 * 30 + 30)] ^= 8
    assert "known WebGL picture" in backend.wrong_picture(base64.b64encode(drawn.tobytes()).decode())


def test_the_probes_painting_is_right_and_bare_paper_or_another_colour_is_not(browser):
    painting = browser.paint(backend.PAINTING, 1)
    assert backend.wrong_painting(painting.png) == ""
    image = decode(painting.png)
    swapped, bare = image[..., ::-1], np.broadcast_to(np.uint8(backend.PAPER), image.shape)
    for wrong in (swapped, bare, image // 2, image[:32]):
        png = cv2.imencode(".png", np.ascontiguousarray(wrong[..., ::-1]))[1].tobytes()
        assert backend.wrong_painting(png)


# ---- falling back -----------------------------------------------------------------------------------------------
def test_a_gpu_that_is_there_but_does_not_draw_falls_back_to_llvmpipe(monkeypatch, tmp_path):
    """Each of its kinds is started once: what WebGL says of itself does not change."""
    pretend_nvidia(monkeypatch, tmp_path)
    monkeypatch.setattr(render.browser.time, "sleep", lambda seconds: None)
    info, launched, paints = started(RenderSettings(), monkeypatch)
    assert launched == ["nvidia-egl", "nvidia-vulkan", "llvmpipe"]
    assert info["rasterizer"] == "llvmpipe"
    assert info["fallback"].startswith("nvidia-egl: WebGL is drawn by ANGLE (Mesa")
    assert "; nvidia-vulkan: no WebGL" in info["fallback"]
    assert info["fallback"].endswith("; painting with llvmpipe instead")
    assert "\n" not in info["fallback"]
    assert paints


def test_a_gpu_that_is_asked_for_and_not_there_is_missed_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(chromium, "NVIDIA_DEVICES", (tmp_path / "nvidia0",))
    info, launched, paints = started(RenderSettings(backend="gpu"), monkeypatch)
    assert launched == ["llvmpipe"]
    assert info["fallback"].startswith("backend = gpu: no NVIDIA device here")
    assert info["fallback"].endswith("painting with llvmpipe instead")
    assert paints


def test_nothing_is_said_when_the_first_choice_works(browser):
    assert browser.info["fallback"] == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"driver_files": {}, "environment": {EGL_FILES: "/absent.json"}}, "llvmpipe: no WebGL"),
        # llvmpipe says its name and rasterizes nothing: what is read is left to chance.
        (
            {"environment": {**chromium.KINDS["llvmpipe"].environment, "LP_NO_RAST": "1"}},
            "llvmpipe: a known WebGL picture comes out wrong in ",
        ),
    ],
)
def test_llvmpipe_that_is_missing_or_draws_wrong_falls_back_to_swiftshader(changes, said, monkeypatch):
    alter(monkeypatch, "llvmpipe", **changes)
    info, launched, paints = started(RenderSettings(), monkeypatch)
    assert launched == ["llvmpipe", "swiftshader"]
    assert info["rasterizer"] == "swiftshader"
    assert info["fallback"].startswith(said)
    assert info["fallback"].endswith("; painting with swiftshader instead")
    assert paints


def test_a_kind_that_is_named_is_not_replaced_by_another(monkeypatch):
    alter(monkeypatch, "llvmpipe", driver_files={}, environment={EGL_FILES: "/absent.json"})
    with pytest.raises(BrowserLost, match=r"^llvmpipe: no WebGL$"):
        started(RenderSettings(rasterizer="llvmpipe"), monkeypatch)


def test_stock_accelerates_its_canvases():
    one = Browser(RenderSettings(profile="stock"))
    try:
        one.start()
        assert (one.info["rasterizer"], one.info["fallback"]) == ("stock", "")
        assert one.info["2d_canvas"].startswith("enabled")
    finally:
        one.kill()


def test_the_line_reaches_the_command_line(tmp_path):
    if chromium.has_nvidia():
        pytest.skip("this machine has an NVIDIA device")
    (tmp_path / "a.js").write_text(small())
    command = [sys.executable, "-m", "render", f"{tmp_path}/a.js", "-o", str(tmp_path), "--backend", "gpu"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=STUDIO.parents[1], timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("render: backend = gpu: no NVIDIA device here")
    assert done.stderr.count("\n") == 1
