"""Where Chromium is and how it is started: binaries, flags and environment for each rasterizer.

Software GL in two kinds: `llvmpipe` (Mesa through EGL without a display; Chromium's ANGLE sits on top) and
`swiftshader` (built into Chromium). Both keep 2D canvases and compositing on the CPU: with an accelerated 2D canvas on
an emulated GPU one painting takes a minute instead of a second.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from render.errors import SetupError
from render.settings import RenderSettings

SHELLS = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
)
BROWSERS = ("/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome")
MESA_VENDOR = Path("/usr/share/glvnd/egl_vendor.d/50_mesa.json")

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
    "--disable-accelerated-2d-canvas",
)
RASTERIZER_FLAGS = {
    "llvmpipe": (
        "--use-gl=angle",
        "--use-angle=gl-egl",
        "--ignore-gpu-blocklist",
        "--disable-gpu-sandbox",
        "--disable-gpu-compositing",
    ),
    "swiftshader": ("--enable-unsafe-swiftshader",),
}


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


def flags(rasterizer: str, profile: Path) -> list[str]:
    """Command line of the browser, without its name."""
    return [*FLAGS, *RASTERIZER_FLAGS[rasterizer], f"--user-data-dir={profile}"]


def environment(rasterizer: str, home: Path) -> dict[str, str]:
    """Environment of chromedriver and thereby of the browser. The time zone is fixed: a sketch can ask for it.

    On llvmpipe three variables keep any other EGL (an NVIDIA driver's) out of the way.
    """
    values = {**os.environ, "TZ": "UTC", "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TMPDIR": str(home)}
    values.pop("DISPLAY", None)
    values.pop("WAYLAND_DISPLAY", None)
    if rasterizer == "llvmpipe":
        values |= {"EGL_PLATFORM": "surfaceless", "LIBGL_ALWAYS_SOFTWARE": "1", "GALLIUM_DRIVER": "llvmpipe"}
        if MESA_VENDOR.is_file():
            values["__EGL_VENDOR_LIBRARY_FILENAMES"] = str(MESA_VENDOR)
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
