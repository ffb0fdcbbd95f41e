"""A real run whose judge goes down in the middle of a step, and which is told to stop while it waits, loses nothing.

That it goes on by itself is in tests/bench/test_outage.py, what `on_outage = "stop"` does in tests/reward.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_runs import ROOT, SMALL, command, complete, steps_done, warm_start_is_cached  # noqa: F401 - a fixture

from bench.judge_server import JudgeServer
from grpo.checkpoint import latest
from grpo.folder import read_rows

STEPS = 2


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


def judged(folder: Path, server: JudgeServer, *extra: str) -> list[str]:
    settings = {
        "run.steps": STEPS,
        "reward.judge": "vlm",
        "reward.vlm.backend": "server",
        "reward.vlm.base_url": server.url,
        "reward.vlm.image_size": 64,
        "reward.vlm.tries": 3,
        "reward.vlm.outage_after": 2,
        "reward.vlm.pause_s": 0.5,
        "reward.vlm.cache": folder / "answers.sqlite",
    }
    return command(folder, *extra, **settings)


def goes_dark_after(server: JudgeServer, answers: int) -> None:
    server.fault = lambda request: "503" if server.delivered.total() >= answers else None


def rewards(folder: Path) -> list[float | None]:
    return [row["reward"] for row in read_rows(folder / "laptop" / "rollouts.jsonl")]


def ended(line: list[str], act: Callable[[subprocess.Popen[str], str], None]) -> tuple[int, str]:
    """Exit code and all output of a run; `act` sees every line as it comes."""
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    for text in process.stdout:
        said += text
        act(process, text)
    return process.wait(60), said


def test_a_run_told_to_stop_while_it_waits_stops_and_goes_on_later(server: JudgeServer, tmp_path: Path) -> None:
    goes_dark_after(server, 30)  # of 24 a step: in the middle of the second

    def act(process: subprocess.Popen[str], text: str) -> None:
        if "judge down" in text:
            process.send_signal(signal.SIGINT)

    code, said = ended(judged(tmp_path, server), act)
    assert code == 130
    last = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(last) == 1
    assert "is down" in last[0]
    assert "Traceback" not in said
    assert steps_done(tmp_path / "laptop") == 1
    assert latest(tmp_path / "laptop" / "checkpoints").name == "step_0001"

    server.fault = lambda request: None
    complete(judged(tmp_path, server, "--resume"))
    assert set(server.delivered.values()) == {1}
    assert len(rewards(tmp_path)) == STEPS * SMALL["sample.group_size"]
    assert None not in rewards(tmp_path)
