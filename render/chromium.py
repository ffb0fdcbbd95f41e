"""Where Chromium is and how it is started: binaries, and the kinds of GL with their flags and environment.

A kind is one way to get WebGL: the public recipe's (`stock`), two in software (`llvmpipe`: Mesa through EGL without a
display, with Chromium's ANGLE on top; `swiftshader`: built into Chromium) and two on an NVIDIA GPU. All but `stock`
keep 2D canvases and compositing on the CPU, those on a GPU as well: the mask of a filled shape is CPU work, and with an
accelerated 2D canvas on an emulated GPU one painting takes a minute instead of a second. Which kinds are tried, and
what each must show before it is believed, stands in `render.backend`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from render.errors import SetupError
from render.settings import RenderSettings

SHELLS = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
)
BROWSERS = ("/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--mute-audio",
    "--force-color-profile=srgb",
    "--disable-dev-shm-usage",
    "--window-size=1200,1200",
    "--lang=en-US",
    "--js-flags=--max-old-space-size=512",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-gpu-process-crash-limit",
)
CPU_CANVAS = "--disable-accelerated-2d-canvas"
# A GL driver of the machine for WebGL alone: not refused for its name, not for compositing, not for 2D canvases.
OWN_DRIVER = ("--ignore-gpu-blocklist", "--disable-gpu-sandbox", "--disable-gpu-compositing", CPU_CANVAS)

# libglvnd's folders for the EGL vendors' files and the Vulkan loader's for its drivers', distribution's before
# administrator's; the last is where managed clusters mount NVIDIA's driver into containers.
SHARES = (Path("/usr/share"), Path("/etc"), Path("/usr/local/nvidia/share"))
MESA_EGL = tuple(share / "glvnd/egl_vendor.d/50_mesa.json" for share in SHARES)
NVIDIA_EGL = tuple(share / "glvnd/egl_vendor.d/10_nvidia.json" for share in SHARES)
NVIDIA_VULKAN = tuple(
    share / "vulkan/icd.d" / name for share in SHARES for name in ("nvidia_icd.json", "nvidia_icd.x86_64.json")
)
# Either shows that the kernel has NVIDIA's driver; the device file alone is made when the GPU is first used.
NVIDIA_DEVICES = (Path("/dev/nvidia0"), Path("/proc/driver/nvidia"))
# What steers Mesa away from where a kind sends it.
_FOREIGN = ("EGL_PLATFORM", "LIBGL_ALWAYS_SOFTWARE", "GALLIUM_DRIVER", "DISPLAY", "WAYLAND_DISPLAY")


@dataclass(frozen=True)
class Kind:
    """One way to get WebGL.

    flags: beside FLAGS. renderer: words that must all stand in WebGL's renderer string, in lower case. source: where
    the flags are documented. environment: of the browser. driver_files: variable -> places of the file that names the
    driver to load; the variable is set to the first that exists. gpu: runs on a GPU. cpu_canvas: 2D canvases must be
    drawn by the CPU.
    """

    flags: tuple[str, ...]
    renderer: tuple[str, ...]
    source: str
    environment: Mapping[str, str] = field(default_factory=dict)
    driver_files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    gpu: bool = False
    cpu_canvas: bool = True


KINDS: dict[str, Kind] = {
    "stock": Kind(
        flags=("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-sandbox"),
        renderer=("swiftshader",),
        source="the public recipe; Chromium docs/gpu/swiftshader.md, 'As the OpenGL ES driver'",
        cpu_canvas=False,
    ),
    "llvmpipe": Kind(
        flags=("--use-gl=angle", "--use-angle=gl-egl", *OWN_DRIVER),
        renderer=("llvmpipe",),
        source="Chromium ui/gl/gl_switches.cc, kANGLEImplementationOpenGLEGLName; Mesa docs/envvars.rst; "
        "libglvnd src/EGL/icd_enumeration.md",
        environment={"EGL_PLATFORM": "surfaceless", "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe"},
        driver_files={"__EGL_VENDOR_LIBRARY_FILENAMES": MESA_EGL},
    ),
    "swiftshader": Kind(
        flags=("--enable-unsafe-swiftshader", CPU_CANVAS),
        renderer=("swiftshader",),
        source="Chromium docs/gpu/swiftshader.md, 'As the WebGL fallback'",
    ),
    "nvidia-egl": Kind(
        flags=("--use-gl=angle", "--use-angle=gl-egl", *OWN_DRIVER),
        renderer=("nvidia", "opengl"),
        source="Chromium ui/gl/gl_switches.cc, kANGLEImplementationOpenGLEGLName; remotion.dev/docs/gl-options, "
        "'On a cloud instance with a GPU'; libglvnd src/EGL/icd_enumeration.md",
        driver_files={"__EGL_VENDOR_LIBRARY_FILENAMES": NVIDIA_EGL},
        gpu=True,
    ),
    "nvidia-vulkan": Kind(
        flags=(
            "--use-gl=angle",
            "--use-angle=vulkan",
            "--enable-features=Vulkan",
            "--disable-vulkan-surface",
            *OWN_DRIVER,
        ),
        renderer=("nvidia", "vulkan"),
        source="developer.chrome.com/blog/supercharge-web-ai-testing (headless Chrome on NVIDIA T4 and V100); "
        "Vulkan-Loader docs/LoaderDriverInterface.md, VK_DRIVER_FILES (older loaders: VK_ICD_FILENAMES)",
        driver_files={"VK_DRIVER_FILES": NVIDIA_VULKAN, "VK_ICD_FILENAMES": NVIDIA_VULKAN},
        gpu=True,
    ),
}


def has_nvidia() -> bool:
    """Whether an NVIDIA device is on this machine. That WebGL works on it is for the probe to find."""
    return any(path.exists() for path in NVIDIA_DEVICES)


def find_browser(settings: RenderSettings) -> Path:
    """Path of a Chromium that can run headless: the setting, the headless shell, or plain Chromium, in this order."""
    if settings.browser:
        return _given(settings.browser, "browser")
    found = _first((*SHELLS, *BROWSERS))
    if found is None:
        raise SetupError("no Chromium is installed: apt-get install chromium-headless-shell (or chromium)")
    return found


def find_driver(settings: RenderSettings) -> Path:
    """Path of chromedriver: the setting, or the one that apt installs."""
    if settings.driver:
        return _given(settings.driver, "driver")
    found = _first(("chromedriver", "/usr/lib/chromium/chromedriver"))
    if found is None:
        raise SetupError("chromedriver is not installed: apt-get install chromium-driver")
    return found


def is_shell(browser: Path) -> bool:
    return browser.name.endswith("headless-shell")


def flags(kind: str, profile: Path) -> list[str]:
    """Command line of the browser, without its name. profile: folder of the browser's user data."""
    return [*FLAGS, *KINDS[kind].flags, f"--user-data-dir={profile}"]


def environment(kind: str, home: Path) -> dict[str, str]:
    """Environment of chromedriver and thereby of the browser. The time zone is fixed: a sketch can ask for it.

    Each kind loads its own driver and no other. On a GPU, a driver's file that the environment names already is kept:
    so a driver in a place of its own is found.
    """
    values = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    values |= {"TZ": "UTC", "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TMPDIR": str(home)}
    values |= KINDS[kind].environment
    for variable, places in KINDS[kind].driver_files.items():
        file = next((place for place in places if place.is_file()), None)
        if file is not None and not (KINDS[kind].gpu and variable in values):
            values[variable] = str(file)
    return values


def check_runs(program: Path) -> None:
    """Raise SetupError when a program cannot say its version: a library is missing, or it is for other machines."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", timeout=10)
    except subprocess.TimeoutExpired:
        return
    except OSError as error:
        raise SetupError(f"{program} does not run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise SetupError(f"{program} does not run: {said[-1] if said else f'exit status {done.returncode}'}")


def _given(text: str, key: str) -> Path:
    path = Path(shutil.which(text) or text)
    if not path.is_file() or not os.access(path, os.X_OK):
        raise SetupError(f"[render] {key} = {text!r} is not a program on this machine")
    return path.resolve()


def _first(candidates: tuple[str, ...]) -> Path | None:
    for candidate in candidates:
        found = shutil.which(candidate)
        if found:
            return Path(found).resolve()
    return None
