"""The grammar: a seed decides the text, every decision shows in the source, Chromium paints what it writes."""

import dataclasses
import re

import numpy
import pytest

from grpo import grammar
from render.browser import Browser
from render.settings import TEN_METHODS, RenderSettings


def sketches(count: int, seed: int = 0) -> list[str]:
    rng = numpy.random.default_rng(seed)
    return [grammar.sample_sketch(rng) for _ in range(count)]


def test_seed_decides_the_text():
    assert sketches(20, seed=3) == sketches(20, seed=3)
    assert len(set(sketches(200, seed=4))) == 200


def test_only_the_ten_methods_are_called():
    called = {name for sketch in sketches(300) for name in re.findall(r"brush\.(\w+)", sketch)}
    assert called <= set(TEN_METHODS)
    assert {"scaleBrushes", "fill", "fillBleed", "fillTexture", "beginShape", "vertex", "endShape", "circle"} <= called


def test_every_decision_changes_the_source():
    rng = numpy.random.default_rng(1)
    base = dataclasses.replace(grammar.draw_decisions(rng), green="behind", layers=2)
    drawn = [grammar.draw_decisions(rng) for _ in range(100)]
    for field in dataclasses.fields(grammar.Decisions):
        values = {getattr(decisions, field.name) for decisions in drawn}
        sources = {grammar.write_sketch(dataclasses.replace(base, **{field.name: value})) for value in values}
        assert len(sources) == len(values) > 1, field.name


def test_a_habit_closes_no_list_and_ties_decisions_together():
    rng = numpy.random.default_rng(2)
    drawn = [grammar.draw_decisions(rng) for _ in range(4000)]
    assert {d.ground for d in drawn} == set(grammar.GROUNDS)
    assert {d.palette[0] for d in drawn} == {colour for family in grammar.PALETTES for colour in family[0]}
    assert {d.centre[0] for d in drawn} == {d.centre[1] for d in drawn} == set(grammar.PLACES)
    for name, values in (("layering", grammar.LAYERINGS), ("heart", grammar.HEARTS), ("green", grammar.GREENS)):
        assert {getattr(d, name) for d in drawn} == set(values)
    central = [abs(d.centre[0] - 300) < 100 and abs(d.centre[1] - 300) < 100 for d in drawn]
    large = numpy.array([d.reach for d in drawn]) >= 195
    assert 0.1 < numpy.corrcoef(central, large)[0, 1] < 0.8


def test_petals_stand_out_from_the_ground():
    rng = numpy.random.default_rng(5)
    for decisions in (grammar.draw_decisions(rng) for _ in range(500)):
        ground, petal = (
            numpy.array(list(bytes.fromhex(c[1:])), float) for c in (decisions.ground, decisions.palette[0])
        )
        assert numpy.linalg.norm(ground - petal) > 90


@pytest.fixture(scope="module")
def browser():
    browser = Browser(RenderSettings())
    browser.start()
    yield browser
    browser.kill()


BEST = grammar.Decisions(
    ground="#f8f1e1",
    palette=("#fab98f", "#f28f79", "#d9536a"),
    leaf="#8fae6b",
    stamen="#f6c445",
    centre=(300, 300),
    petals=5,
    layers=2,
    reach=220,
    spread=44,
    tilt=54,
    opacity=220,
    bleed=0.12,
    grain=0.3,
    profile="round",
    layering="petal by petal",
    heart="rays",
    green="behind",
    stamens="column",
    splashes="few",
)


@pytest.mark.parametrize("seed", range(5))
def test_chromium_paints_it(browser, seed):
    rng = numpy.random.default_rng(seed)
    painting = browser.paint(grammar.sample_sketch(rng), 0)
    assert painting.painted, (painting.reason, painting.detail)
    assert painting.finished
    assert painting.errors == ()
    assert 4 <= painting.shapes + painting.circles <= 33


def test_a_large_centred_bloom_is_within_reach(browser):
    painting = browser.paint(grammar.write_sketch(BEST), 0)
    assert painting.finished
    assert painting.shapes == 5 * 2 + 5 + 3 + 5 + 3
    assert 0.2 < painting.coverage < 0.45
