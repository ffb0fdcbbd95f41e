"""Lets tests of one folder share its helper modules, and the tests of one module a browser."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from render.browser import Browser
from render.settings import RenderSettings

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A warm browser with the default settings."""
    one = Browser(RenderSettings())
    one.start()
    yield one
    one.kill()
