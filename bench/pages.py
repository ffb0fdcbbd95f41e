"""A real Chromium that looks at pages from disk, for the benchmark and the tests of the gallery."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from render import chromium
from render.settings import RenderSettings

KIND = "llvmpipe" if any(path.exists() for path in chromium.MESA_EGL) else "swiftshader"


@contextmanager
def page_browser(width: int = 1440, height: int = 900) -> Iterator[Any]:
    """A driver whose browser paints by the same rasterizer as the farm of this machine, with a profile of its own."""
    folder = Path(tempfile.mkdtemp(prefix="gallery-"))
    options = webdriver.ChromeOptions()
    binary = chromium.find_browser(RenderSettings())
    options.binary_location = str(binary)
    for flag in chromium.flags(KIND, folder / "profile"):
        if flag != "--hide-scrollbars":
            options.add_argument(flag)
    if chromium.is_shell(binary):
        options.set_capability("browserName", "chrome-headless-shell")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(str(chromium.find_driver(RenderSettings())), env=chromium.environment(KIND, folder))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        resize(driver, width, height)
        yield driver
    finally:
        driver.quit()
        shutil.rmtree(folder, ignore_errors=True)


def resize(driver: Any, width: int, height: int, scale: float = 1.0, mobile: bool = False) -> None:
    """The inner size of the window in CSS pixels."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile},
    )


def colour_scheme(driver: Any, name: str) -> None:
    """What the system prefers: light or dark."""
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]}
    )
