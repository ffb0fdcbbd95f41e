"""The benchmark's own sketches: what their names promise holds."""

from __future__ import annotations

import re

import pytest

from bench.corpus import LIGHT, QUICK, SEED, corpus, other_sets
from render.browser import Browser
from render.errors import UserError
from render.settings import TEN_METHODS, RenderSettings


def test_only_the_ten_methods_and_enough_sketches() -> None:
    sources = corpus()
    assert len(sources) >= 14
    assert sum(name.startswith(SEED) for name in sources) >= 5
    assert set(QUICK) <= set(sources)
    for name, source in sources.items():
        assert set(re.findall(r"brush\.(\w+)", source)) <= set(TEN_METHODS), name


def test_seed_sketches_are_20_to_25_shapes_on_600_by_600() -> None:
    browser = Browser(RenderSettings())
    try:
        browser.start()
        for name in corpus():
            if name.startswith(SEED) or name == LIGHT:
                painting = browser.paint(corpus()[name], 0)
                assert painting.painted, (name, painting)
                assert painting.finished, (name, painting.errors)
                assert (painting.width, painting.height) == (600, 600), name
                assert (20 <= painting.shapes <= 25) == name.startswith(SEED), (name, painting.shapes)
    finally:
        browser.kill()


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(UserError, match="no sketch 'sunset'"):
        corpus(("sunset",))


def test_other_sets() -> None:
    sets = other_sets(2)
    assert {name: len(sources) for name, sources in sets.items()} == {"tests": 2, "pool": 2, "grammar": 2}
    assert all("function setup" in source or "setup =" in source for group in sets.values() for source in group)
