"""Fixtures of the reward tests: a browser that starts only when something must be painted, and the painted pools.

Everything painted here goes through the pool's own cache, so a second run paints nothing.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import hacks

from render.browser import Browser
from render.painting import Painting
from render.settings import RenderSettings
from reward.hacked import hacked_canvases
from reward.local import Study
from reward.pool import Pool, load_pool, studio_fingerprint
from reward.settings import PoolSettings

CACHE = Path(__file__).parents[2] / ".cache" / "pool"


@pytest.fixture(scope="session")
def paint() -> Iterator[Callable[[str, int], Painting]]:
    """Paints in a browser of the calling thread."""
    of_thread = threading.local()
    with contextlib.ExitStack() as stack:

        def paint(source: str, seed: int) -> Painting:
            if not hasattr(of_thread, "browser"):
                browser = Browser(RenderSettings())
                stack.callback(browser.kill)
                browser.start()
                of_thread.browser = browser
            return of_thread.browser.paint(source, seed)

        yield paint


def painted(source: str, references: int, paint: Callable[[str, int], Painting]) -> Pool:
    settings = PoolSettings(source=source, references=references)
    return load_pool(settings, paint, fingerprint=studio_fingerprint("auto"), cache=CACHE, parallel=2)


@pytest.fixture(scope="session")
def gallery(paint, tmp_path_factory) -> Callable[[dict[str, str]], dict[str, bytes]]:
    """Sketches by name -> PNG by name, painted once and cached."""

    def gallery(sketches: dict[str, str]) -> dict[str, bytes]:
        folder = tmp_path_factory.mktemp("gallery")
        lines = []
        for index, (name, source) in enumerate(sketches.items()):
            (folder / f"{index}.js").write_text(source, encoding="utf-8")
            tier = "love" if index % 2 else "okay"
            lines.append(json.dumps({"tier": tier, "source_file": f"{index}.js", "title": name}))
        (folder / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")
        return {reference.meta["title"]: reference.png for reference in painted(str(folder), 2, paint).references}

    return gallery


@pytest.fixture(scope="session")
def pool(paint) -> Pool:
    """The embedded pool, painted."""
    return painted("embedded", 4, paint)


@pytest.fixture(scope="session")
def study(pool) -> Study:
    return Study(pool)


@pytest.fixture(scope="session")
def hacked(pool, gallery) -> dict[str, bytes]:
    """PNG of every hacked canvas by name."""
    return hacked_canvases(pool.tier("love")[0].png) | gallery(hacks.SKETCHES)
