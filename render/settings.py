"""Settings of the render farm, and the helper with which every table of the config declares its fields.

A setting is declared once, where it is used: its default, its bounds and one line of documentation stand in the
dataclass; `grpo.config` reads TOML into these classes and enforces the bounds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, dataclass, field
from difflib import get_close_matches
from typing import Any

from render.errors import ConfigError


def setting(
    default: Any = MISSING,
    *,
    doc: str,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """A dataclass field with bounds (ge: at least, gt: above, le: at most, lt: below), allowed values, a doc line."""
    return field(default=default, metadata={"doc": doc, "ge": ge, "gt": gt, "le": le, "lt": lt, "choices": choices})


TEN_METHODS = (
    "scaleBrushes",
    "noStroke",
    "fill",
    "noFill",
    "fillBleed",
    "fillTexture",
    "beginShape",
    "vertex",
    "endShape",
    "circle",
)


# What the page changes in the way the libraries paint, and why. Each is applied when the page loads (library files stay
# as they are), and each can be left out by itself. What each costs in pixels stands in docs/RENDERING.md.
PATCHES = {
    "float16": "the mask of a filled shape keeps 16-bit floats: 8 bits round its many layers of tiny alpha away",
    "msaa": "no multisampling: only whole rectangles are drawn, so that it changes no pixel and costs time",
    "blend": "p5.brush's blend shader, built anew from its own text with the same formulas and less work",
    "mask": "the mask of a filled shape is drawn by a coverage rasterizer of its own instead of a 2D canvas",
}
# The order of the names is from the slowest to the fastest.
PROFILES: dict[str, tuple[str, ...]] = {
    "stock": (),
    "exact": ("float16",),
    "fast": ("float16", "msaa", "blend", "mask"),
}


@dataclass(frozen=True)
class RenderSettings:
    """Table [render]: the farm that paints sketches in Chromium."""

    workers: int = setting(0, doc="browsers that paint at the same time; 0 = one per CPU core", ge=0, le=256)
    profile: str = setting(
        "fast",
        doc="fast = the same picture to the eye, exact = the library untouched, stock = the public recipe (slow)",
        choices=tuple(PROFILES),
    )
    without: tuple[str, ...] = setting((), doc=f"patches of the profile that are left out ({', '.join(PATCHES)})")
    backend: str = setting(
        "auto",
        doc="where the blend pass runs: gpu (NVIDIA, through ANGLE), cpu, auto = gpu where one works",
        choices=("auto", "cpu", "gpu"),
    )
    grid_url: str = setting("", doc="address of a Selenium Grid 4 hub; empty = browsers of this machine")
    rasterizer: str = setting(
        "auto",
        doc="software GL under Chromium: llvmpipe (fast), swiftshader (built in), auto = llvmpipe where it works",
        choices=("auto", "llvmpipe", "swiftshader"),
    )
    methods: tuple[str, ...] | str = setting(
        TEN_METHODS, doc='methods that exist on `brush`: a list of names, or "all" for the whole public API'
    )
    seed: int = setting(0, doc="seed of every painting: the same sketch gives the same pixels", ge=0)
    max_side: int = setting(2048, doc="largest canvas side in pixels; a larger canvas is rejected", ge=16, le=8192)
    cpu_budget_s: float = setting(20.0, doc="CPU seconds that one sketch may use in its browser", gt=0)
    deadline_s: float = setting(90.0, doc="wall-clock seconds after which a sketch's browser is killed", gt=0)
    memory_mb: int = setting(2500, doc="memory ceiling of one browser and its children, MiB", ge=256)
    recycle_after: int = setting(300, doc="paintings after which a browser is replaced", ge=1)
    recycle_mb: int = setting(1200, doc="memory of an idle browser above which it is replaced, MiB", ge=128)
    queue_limit: int = setting(1024, doc="sketches that may wait; more make `submit` wait for room", ge=1)
    blank_below: float = setting(0.005, doc="paint coverage under which a painting counts as blank", ge=0, lt=1)
    browser: str = setting("", doc="path of chromium-headless-shell or chromium; empty = look for it")
    driver: str = setting("", doc="path of chromedriver; empty = look for it")

    def patches(self) -> tuple[str, ...]:
        """The patches of the profile but for those that are left out. Raises ConfigError for an unknown name."""
        for name in self.without:
            if name not in PATCHES:
                nearest = get_close_matches(name, PATCHES, n=1, cutoff=0.0)[0]
                raise ConfigError(f"without: there is no patch {name!r}; the nearest is {nearest!r}")
        return tuple(name for name in PROFILES[self.profile] if name not in self.without)


def check_methods(methods: tuple[str, ...] | str, names: Collection[str]) -> None:
    """Raise ConfigError unless `methods` is "all" or one or more of `names`, which `brush` really has."""
    if methods == "all":
        return
    if isinstance(methods, str) or not methods:
        raise ConfigError(f'methods: {methods!r} is neither "all" nor a list of names')
    for method in methods:
        if method not in names:
            nearest = get_close_matches(method, names, n=1, cutoff=0.0)[0]
            raise ConfigError(f"methods: brush has no {method!r}; the nearest is {nearest!r}")
