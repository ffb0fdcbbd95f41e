"""The gate: a rule broken is a rejection with its reason, a fault of the machine never is."""

from __future__ import annotations

from dataclasses import fields

import pytest

from render.painting import CAUSES, REJECTIONS, Outcome, Painting
from render.settings import TEN_METHODS
from reward.base import Candidate
from reward.gate import Gate

SKETCH = """function setup() {
  createCanvas(200, 200, WEBGL);
}
function draw() {
  brush.circle(0, 0, 60);
}"""
REPLY = f"```js\n{SKETCH}\n```"
GATE = Gate(TEN_METHODS)


@pytest.mark.parametrize("reason", REJECTIONS)
def test_what_the_page_rejects_is_rejected(reason: str) -> None:
    painting = Painting(Outcome.REJECTED, reason, "because", 3)
    result = GATE.check(Candidate(REPLY, SKETCH, painting))
    assert (result.outcome, result.reason, result.detail, result.line) == ("rejected", reason, "because", 3)


@pytest.mark.parametrize("cause", CAUSES)
def test_a_fault_of_the_machine_is_unscored(cause: str) -> None:
    result = GATE.check(Candidate(REPLY, SKETCH, Painting(Outcome.UNSCORED, cause, "lost")))
    assert (result.outcome, result.reason, result.detail) == ("unscored", cause, "lost")


@pytest.mark.parametrize("source", [SKETCH, "function draw() {", ""])
@pytest.mark.parametrize("finished", [True, False])
def test_a_painting_that_is_there_passes_whatever_the_text(source: str, finished: bool) -> None:
    painting = Painting(Outcome.PAINTED, png=b"png", coverage=0.2, finished=finished)
    result = GATE.check(Candidate(REPLY, source, painting))
    assert result.outcome == "passed"
    assert [getattr(result, field.name) for field in fields(result)[1:]] == ["", "", None]


@pytest.mark.parametrize(
    ("reply", "reason", "line"),
    [
        ("I would rather not.", "no_sketch", None),
        ("<think>\nLet me plan the petals", "no_sketch", None),
        (REPLY[:-30], "truncated", 4),
        (REPLY.replace("WEBGL", "P2D"), "not_webgl", 2),
        (REPLY.replace("WEBGL", "WEBGL); text('a', 0, 0"), "text", 2),
        (REPLY.replace("circle", "circl"), "unknown_method", 5),
        (REPLY.replace("brush.circle", "noFill"), "no_painting", None),
    ],
)
def test_without_a_painting_the_text_decides(reply: str, reason: str, line: int | None) -> None:
    result = GATE.check(Candidate(reply, None, None))
    assert (result.outcome, result.reason, result.line) == ("rejected", reason, line)


def test_a_good_sketch_that_was_never_painted_is_unscored() -> None:
    for candidate in (Candidate(REPLY, SKETCH, None), Candidate(REPLY, None, None)):
        result = GATE.check(candidate)
        assert (result.outcome, result.reason) == ("unscored", "farm_closed")


def test_refuses_what_need_not_be_painted() -> None:
    assert GATE.refuses(SKETCH) is None
    refusal = GATE.refuses(SKETCH.replace("setup", "start"))
    assert refusal is not None
    assert refusal.reason == "no_setup"
    assert Gate("all").refuses(SKETCH.replace("circle", "spray")) is None
