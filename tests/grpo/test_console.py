"""What a person sees: the live table, the plain lines, the summary."""

import io
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from grpo.console import StepConsole, judge_table, plain_line, summary, thirds
from grpo.metrics import JUDGE_COUNTS
from grpo.stages import Stages

METRICS = {
    "step": 3, "reward": 0.5, "rewards/judge/mean": 0.4, "rollouts/scored": 7, "rollouts/rejected": 1,
    "rollouts/unscored": 0, "completions/mean_length": 181.0, "entropy": 0.3, "loss": 0.0, "grad_norm": 0.2,
    "step_time": 10.0, "time/sample": 2.0, "time/paint_waited": 5.0, "time/score": 1.0, "time/train": 2.0,
    "updates": 1, "frac_unscored_groups": 0.0,
}  # fmt: skip
TERMS = {"rewards/judge/mean": "judge (stand-in)"}


def screen(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=160)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_step_shows_its_terms_its_time_and_where_its_sheet_lies(terminal: bool) -> None:
    console = screen(terminal)
    with StepConsole(console, 60, 8, TERMS) as steps:
        for kind in ("sampled", "painted", "scored"):
            steps.event(kind)
        steps.finished(METRICS, Path("runs/laptop/sheets/step_0003.png"))
    shown = console.file.getvalue()
    for part in ("stand-in)", "0.500", "5.0", "on-policy"):
        assert part in shown
    assert ("step_0003.png" in shown) == terminal


def test_dead_steps_raise_an_alarm_that_names_their_kind() -> None:
    console = screen(False)
    with StepConsole(console, 60, 8, TERMS) as steps:
        for number in range(5):
            assert "warning" not in console.file.getvalue()
            steps.finished({**METRICS, "step": number, "updates": 0}, Path("sheet.png"))
    assert "5 steps in a row gave no gradient (all rewards of a group equal)" in console.file.getvalue()


def test_stages_show_a_line_at_once_and_at_the_end_without_a_terminal() -> None:
    console = screen(False)
    with Stages(console) as stages:
        for done in range(1, 51):
            stages.show("warm start", done, 50, f"loss {1 / done:.3f}")
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "warm start: 1 of 50  loss 1.000"
    assert lines[-1] == "warm start: 50 of 50  loss 0.020"
    assert len(lines) == 2


def test_thirds_by_hand() -> None:
    assert thirds([1, 2, 3, 4, 5, 6]) == [1.5, 3.5, 5.5]
    assert thirds([1, 2, 3, 4]) == [1, 2.5, 4]
    assert thirds([1, 3]) == [1, 3]
    assert thirds([]) == []


def test_the_last_line_is_for_machines() -> None:
    rows = [
        {
            "reward": value, "reward_best": value, "reward_median": value, "reward_adjusted": value,
            "rollouts/scored": 3, "rollouts/rejected": 1, "rollouts/unscored": 0,
        }
        for value in (0.1, 0.2, 0.6)
    ]  # fmt: skip
    line = summary(rows, [[0.1], [0.2], [0.6]], Path("runs/laptop"), 61.2)[1]
    assert line == (
        "steps=3 reward_first=0.1000 reward_last=0.6000 gain=0.5000 scored=9 rejected=3 unscored=0 seconds=61 "
        "run=runs/laptop"
    )


def test_a_plain_line_names_the_share_of_painting() -> None:
    line = plain_line(METRICS, Counter({"rejected: blank": 1}), 60, 570.0, TERMS)
    assert "paint waited 5.0 (50%)" in line
    assert "judge (stand-in) 0.400" in line
    assert "1x rejected: blank" in line
    assert "left 00:09:30" in line


def test_the_judges_table_adds_the_steps_up_and_a_stand_in_has_none() -> None:
    quiet = {f"judge/{part}": 0 for part in JUDGE_COUNTS} | {"judge/faults": ""}
    assert judge_table([quiet, quiet]) is None
    first = {**quiet, "judge/calls": 70, "judge/answers": 60, "judge/cached": 4, "judge/faults": "429:3 timeout:7"}
    second = {**quiet, "judge/calls": 64, "judge/answers": 64, "judge/missing": 1, "judge/faults": "429:2"}
    console = screen(False)
    console.print(judge_table([first, second]))
    shown = " ".join(console.file.getvalue().split())
    for part in ("134, of which 0 again", "124 paid, 4 from the cache", "7 timeout, 5 429"):
        assert part in shown
