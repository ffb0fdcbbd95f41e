"""Which kinds of GL a browser tries, in which order, and what one must show before it is believed.

The choice is a pure function of the settings and of whether the machine has an NVIDIA device. A kind is believed when
WebGL's renderer string names it, 2D canvases are where they belong, and two pictures are right: one drawn with plain
WebGL, known to the level (what the blend pass needs of a driver: a texture upload, texelFetch, pow, a scissor), and one
painted by p5.brush. Left out: how fast a kind is.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

import numpy as np

from render.chromium import KINDS, NVIDIA_DEVICES
from render.pixels import decode
from render.settings import RenderSettings

GPU = tuple(name for name, kind in KINDS.items() if kind.gpu)
CPU = ("llvmpipe", "swiftshader")
# Browsers that start at the same moment get in each other's way: tried again, waiting ever longer. A kind that is only
# an attempt, before or after the one to rely on, is given up sooner.
MAIN_TRIES, OTHER_TRIES = 4, 2

SIDE = 64
LEVELS = 2.0
PICTURE = """
const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
const gl = canvas.getContext("webgl2", { antialias: false });
if (!gl) return null;
const info = gl.getExtension("WEBGL_debug_renderer_info");
const renderer = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
const program = gl.createProgram();
const shaders = [[gl.VERTEX_SHADER, `#version 300 es
void main() { gl_Position = vec4(vec2[3](vec2(-1, -1), vec2(3, -1), vec2(-1, 3))[gl_VertexID], 0, 1); }`],
[gl.FRAGMENT_SHADER, `#version 300 es
precision highp float;
uniform sampler2D mask;
out vec4 color;
void main() {
  vec2 at = gl_FragCoord.xy / 64.0;
  color = vec4(texelFetch(mask, ivec2(at * 2.0), 0).r, pow(at.x, 2.2), at.y, 1);
}`]];
for (const [type, text] of shaders) {
  const shader = gl.createShader(type);
  gl.shaderSource(shader, text);
  gl.compileShader(shader);
  gl.attachShader(program, shader);
}
gl.linkProgram(program);
gl.useProgram(program);
gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
const texels = new Uint8Array([0, 85, 170, 255].flatMap((red) => [red, 0, 0, 255]));
gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 2, 2, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
gl.clearColor(1, 1, 1, 1);
gl.clear(gl.COLOR_BUFFER_BIT);
gl.enable(gl.SCISSOR_TEST);
gl.scissor(16, 16, 40, 32);
gl.drawArrays(gl.TRIANGLES, 0, 3);
const pixels = new Uint8Array(64 * 64 * 4);
gl.readPixels(0, 0, 64, 64, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
return [renderer, btoa(String.fromCharCode(...pixels))];
"""

PAINTING = """
function setup() { createCanvas(64, 64, WEBGL) }
function draw() { background(250, 240, 220); brush.fill("#c03030", 220); brush.circle(0, 0, 20) }
"""
# Pigment: mean of the middle 8 x 8 pixels. The kinds and profiles differ by less than 2 levels there, the paper by 21.
PAPER, PIGMENT = (250, 240, 220), (252, 219, 208)
PAPER_LEVELS, PIGMENT_LEVELS = 2.0, 8.0


def kinds_to_try(settings: RenderSettings, nvidia: bool) -> tuple[str, ...]:
    """Names of KINDS in the order in which they are tried. nvidia: an NVIDIA device is on this machine.

    A rasterizer that is named is the only one, whatever the backend: browsers that follow a first one are tied to its
    kind in this way, so that they paint the same bytes.
    """
    if settings.profile == "stock":
        return ("stock",)
    if settings.rasterizer != "auto":
        return (settings.rasterizer,)
    return (*GPU, *CPU) if nvidia and settings.backend != "cpu" else CPU


def unmet(settings: RenderSettings, kinds: Sequence[str]) -> str:
    """Why `backend = gpu` is not even tried; empty when it is, or was not asked for."""
    if settings.backend != "gpu" or any(KINDS[name].gpu for name in kinds):
        return ""
    if settings.profile == "stock":
        return "backend = gpu has no say: profile = stock is the recipe's SwiftShader"
    if settings.rasterizer != "auto":
        return f"backend = gpu has no say: rasterizer = {settings.rasterizer} is named"
    return f"backend = gpu: no NVIDIA device here (neither {' nor '.join(map(str, NVIDIA_DEVICES))})"


def tries(kinds: Sequence[str]) -> dict[str, int]:
    """How often each kind is started before the next one's turn, when its browser dies."""
    main = next((name for name in kinds if not KINDS[name].gpu), kinds[0])
    return {name: MAIN_TRIES if name == main else OTHER_TRIES for name in kinds}


def fallback(reasons: Iterable[str], kind: str) -> str:
    """One line: why what was wanted first is not what paints, and what does. Empty without a reason."""
    told = "; ".join(" ".join(reason.split()) for reason in reasons if reason)
    return f"{told}; painting with {kind} instead" if told else ""


def wrong_renderer(kind: str, renderer: str) -> str:
    """What is wrong with WebGL's renderer string for this kind; empty when nothing is."""
    missing = [word for word in KINDS[kind].renderer if word not in renderer.lower()]
    return f"WebGL is drawn by {renderer}" if missing else ""


def wrong_canvas(kind: str, state: str) -> str:
    """What is wrong with Chromium's word on 2D canvases; empty when nothing is. state: featureStatus['2d_canvas']."""
    if KINDS[kind].cpu_canvas and state.startswith("enabled"):
        return "2D canvases are not drawn by the CPU: one painting would take a minute"
    return ""


def wrong_picture(pixels: str) -> str:
    """What is wrong with PICTURE; empty when nothing is. pixels: base64 of RGBA bytes, the lowest row first."""
    drawn = np.frombuffer(base64.b64decode(pixels), np.uint8).reshape(SIDE, SIDE, 4).astype(np.float64)
    off = np.abs(drawn - _known_picture()).max(axis=2) > LEVELS
    return f"a known WebGL picture comes out wrong in {off.mean():.0%} of its pixels" if off.any() else ""


def wrong_painting(png: bytes) -> str:
    """What is wrong with PAINTING; empty when nothing is."""
    drawn = decode(png).astype(np.float64)
    if drawn.shape != (SIDE, SIDE, 3):
        return f"the probe's painting is {drawn.shape[1]} x {drawn.shape[0]}, not {SIDE} x {SIDE}"
    paper, middle = drawn[[0, 0, -1, -1], [0, -1, 0, -1]], slice(SIDE // 2 - 4, SIDE // 2 + 4)
    pigment = drawn[middle, middle].reshape(-1, 3).mean(axis=0)
    if np.abs(paper - PAPER).max() > PAPER_LEVELS:
        return f"the probe's paper came out as {paper[0].round().astype(int).tolist()}, not {list(PAPER)}"
    if np.abs(pigment - PIGMENT).max() > PIGMENT_LEVELS:
        return f"the probe's pigment came out as {pigment.round().astype(int).tolist()}, not about {list(PIGMENT)}"
    return ""


def _known_picture() -> np.ndarray:
    """Levels [SIDE, SIDE, 4] of PICTURE, by its formulas."""
    known = np.full((SIDE, SIDE, 4), 255.0)
    y, x = np.mgrid[16:48, 16:56]
    at_x, at_y = (x + 0.5) / SIDE, (y + 0.5) / SIDE
    texels = np.array([[0, 85], [170, 255]])
    known[16:48, 16:56, 0] = texels[(2 * at_y).astype(int), (2 * at_x).astype(int)]
    known[16:48, 16:56, 1] = 255 * at_x**2.2
    known[16:48, 16:56, 2] = 255 * at_y
    return known
