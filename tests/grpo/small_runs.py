"""Real runs for tests, as small as they can be: the command line, a run until some moment, a run to its end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grpo import config as configs
from grpo import small
from grpo.folder import read_rows
from grpo.prompt import messages

ROOT = Path(__file__).parents[2]
LAPTOP = ROOT / "configs" / "laptop.toml"
# As small as a real run can be: real Chromium, and the real small policy, warm-started once into the shared cache.
SMALL = {
    "run.steps": 3,
    "warm_start.steps": 100,
    "sample.group_size": 3,
    "sample.max_completion_length": 260,
    "render.workers": 1,
    "probe.samples": 0,
    "gallery.every": 0,
}


@pytest.fixture(scope="module", autouse=True)
def warm_start_is_cached() -> None:
    """Once for all tests and workers, so that no run below has to wait for it within its time limit."""
    config = configs.load(LAPTOP, [f"warm_start.steps={SMALL['warm_start.steps']}"])
    small.warm_start(
        config.warm_start,
        lambda subject: messages(config.prompt.system, subject, config.subject.composition),
        cache=ROOT / ".cache" / "warm_start",
    )


def command(folder: Path, *extra: str, **settings: object) -> list[str]:
    values = {**SMALL, "run.folder": folder, **settings}
    sets = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "grpo.run", str(LAPTOP), *sets, *extra]


def run_until(line: list[str], ready: Callable[[float], bool], number: int, seconds: float = 400) -> int:
    """Start a run, send it a signal once `ready(when it was started)`, wait for its end."""
    started = time.time()
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + seconds
    while not ready(started):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "the run never came so far"
        time.sleep(0.02)
    process.send_signal(number)
    return process.wait(60)


def complete(line: list[str]) -> str:
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def steps_done(folder: Path) -> int:
    return len(read_rows(folder / "metrics.jsonl"))


def middle_of_a_step(folder: Path, steps: int) -> Callable[[float], bool]:
    """A rollout of the step after `steps` is on disk, written by this process and not by one before it."""
    partial = folder / "rollouts.partial.jsonl"

    def ready(started: float) -> bool:
        return steps_done(folder) >= steps and partial.exists() and partial.stat().st_mtime > started

    return ready


def between_steps(folder: Path, steps: int) -> Callable[[float], bool]:
    return lambda started: steps_done(folder) >= steps
