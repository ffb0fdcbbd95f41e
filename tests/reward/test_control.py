"""The control task: a bell over the count of fills in the text, and the gate's words for what is no sketch."""

import math

import pytest

from render.painting import REJECTIONS
from render.settings import TEN_METHODS
from reward.base import Candidate
from reward.control import Control, closeness, fills
from reward.gate import Gate

CONTROL = Control(Gate(TEN_METHODS), 12)
SKETCH = "function setup(){createCanvas(9,9,WEBGL);%sbrush.circle(4,4,3)}"
FILL = "brush.fill('#f00', 200);"


def sketch(count: int) -> Candidate:
    source = SKETCH % (FILL * count)
    return Candidate(source, source, None)


@pytest.mark.parametrize(("count", "value"), [(12, 1.0), (2, math.exp(-1)), (22, math.exp(-1)), (7, math.exp(-0.25))])
def test_the_reward_is_a_bell_of_width_ten_about_the_target(count: int, value: float) -> None:
    assert closeness(count, 12) == pytest.approx(value, abs=1e-12)
    verdict = CONTROL.judge(sketch(count))
    assert (verdict.reward, verdict.outcome) == (closeness(count, 12), "scored")
    assert verdict.terms["fills"].info == {"count": count}
    assert f"{count} times brush.fill(" in verdict.detail


def test_the_count_is_of_the_text_and_of_fill_alone() -> None:
    assert (
        fills("brush.fill(a); brush.fillBleed(1); brush.noFill(); // brush.fill(b)\nfill(c); for(;;) brush.fill(d)")
        == 3
    )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("There is no code here.", "no_sketch"),
        ((SKETCH % (FILL * 12))[:-1], "truncated"),
        (SKETCH % (FILL * 12 + "text('a',1,1);"), "text"),
    ],
)
def test_what_is_no_sketch_is_rejected_with_the_gates_words(reply: str, reason: str) -> None:
    source = reply if "function" in reply else None
    verdict = CONTROL.judge(Candidate(reply, source, None))
    assert (verdict.reward, verdict.outcome, verdict.reason) == (0.0, "rejected", reason)
    assert reason in REJECTIONS
    assert not verdict.terms
