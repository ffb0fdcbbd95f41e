"""The control task as a user runs it: training moves, and nothing of painting is touched."""

import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import ROOT, SMALL, warm_start_is_cached  # noqa: F401 - a fixture

from grpo import config as configs
from grpo.check import missing
from grpo.folder import read_rows
from grpo.run import main

CONTROL = ROOT / "configs" / "control.toml"
NO_BROWSER = ["--set", "render.browser=/nowhere/chromium", "--set", "render.driver=/nowhere/chromedriver"]


def test_the_reward_rises_and_no_browser_is_needed(tmp_path: Path) -> None:
    """Seeded: on one machine the same run every time. The smaller steps and the shorter warm start are for the time."""
    sets = {
        "warm_start.steps": SMALL["warm_start.steps"],
        "run.folder": tmp_path,
        "gallery.every": 0,
        "run.steps": 6,
        "sample.max_completion_length": 280,
        "sample.top_p": 0.9,
        "train.schedule": "constant",
        "train.learning_rate": 2e-3,
        "train.warmup_steps": 0,
    }
    line = [sys.executable, "-m", "grpo.run", str(CONTROL), *NO_BROWSER]
    line += [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "control" / "metrics.jsonl")
    for column, least in (("fills", 0.2), ("reward", 0.015)):
        first, last = (sum(row[column] for row in part) / 2 for part in (rows[:2], rows[-2:]))
        assert last > first + least, column
    fields = dict(field.split("=") for field in done.stdout.splitlines()[-1].split(" "))
    assert (fields["steps"], float(fields["gain"]) > 0) == ("6", True)
    assert "brush.fill( in a sketch" in done.stdout


def test_check_asks_for_nothing_of_chromium(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CONTROL), "--check", *NO_BROWSER]) == 0
    output = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "nothing is missing on this machine" in output
    assert "the control task: exp(-((n - " in output
    assert missing(configs.load(ROOT / "configs" / "laptop.toml", NO_BROWSER[1::2]))


def test_what_has_no_effect_is_said() -> None:
    assert any("nothing is painted" in note for note in configs.notes(configs.load(CONTROL)))
    target = configs.load(ROOT / "configs" / "laptop.toml", ["reward.target_fills=3", "subject.order=drawn"])
    notes = configs.notes(target)
    assert any("target_fills has no effect" in note for note in notes)
    assert any("order has no effect" in note for note in notes)
