"""Several ranks, as torchrun starts them, on the CPU: the gradient of one process, one journal, and a death that the
others notice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import psutil
import pytest
import torch
from rank_updates import CASES
from small_runs import ROOT, SMALL, steps_done, warm_start_is_cached  # noqa: F401 - a fixture
from test_run import essence, weights

from grpo.folder import read_rows
from grpo.ranks import ALONE, Ranks, join
from render.errors import ConfigError, exit_code

HERE = Path(__file__).parent
CONTROL = ROOT / "configs" / "control.toml"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict, dict]:
    """What the single process and each of two ranks made of the same rollouts."""
    folder = tmp_path_factory.mktemp("updates")
    for start in (TORCHRUN, [sys.executable]):
        done = subprocess.run(
            [*start, HERE / "rank_updates.py", folder], cwd=ROOT, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    return tuple(torch.load(folder / f"{name}.pt", weights_only=False) for name in ("1_0", "2_0", "2_1"))


def test_two_ranks_have_the_gradient_of_one_process(updated: tuple[dict, dict, dict]) -> None:
    for case in CASES:
        alone, *ranks = (found[case] for found in updated)
        assert any(moved.abs().max() > 1e-4 for moved in alone["moved"].values()), case
        for rank in ranks:
            assert rank["loss"] == pytest.approx(alone["loss"], abs=1e-6), case
            assert rank["norm"] == pytest.approx(alone["norm"], abs=1e-6), case
            for name, value in alone["means"].items():
                assert rank["means"][name] == (None if value is None else pytest.approx(value, abs=1e-6)), (case, name)
            for name, moved in alone["moved"].items():
                torch.testing.assert_close(rank["moved"][name], moved, atol=5e-7, rtol=0, msg=f"{case}: {name}")


def test_ranks_do_not_drift_apart(updated: tuple[dict, dict, dict]) -> None:
    _, first, second = updated
    for case in CASES:
        for name, moved in first[case]["moved"].items():
            assert torch.equal(moved, second[case]["moved"][name]), (case, name)


def test_all_halve_when_one_is_short_of_memory(updated: tuple[dict, dict, dict]) -> None:
    alone, *ranks = (found["memory"] for found in updated)
    assert alone["size"] == 2
    assert [rank["size"] for rank in ranks] == [1, 1]
    assert [len(rank["lines"]) for rank in ranks] == [1, 0], "said once"


def test_shares_are_whole_and_equal() -> None:
    for count in (1, 2, 3, 8):
        for total in (0, 1, 7, 8, 64):
            shares = [Ranks(rank, count).share(total) for rank in range(count)]
            assert [row for share in shares for row in share] == list(range(total))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_without_torchrun_a_process_is_alone() -> None:
    assert join("auto", {"RANK": "1", "WORLD_SIZE": "2"}) is ALONE  # what some schedulers set by themselves
    assert (
        join("cpu", {"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}) is ALONE
    )
    with pytest.raises(ConfigError, match="one machine"):
        join("cpu", {"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"})


def line(folder: Path, *extra: str, **settings: object) -> list[str]:
    values = {
        **{"warm_start.steps": SMALL["warm_start.steps"], "run.folder": folder, "run.steps": 3, "gallery.every": 0},
        **{"sample.group_size": 5, "sample.max_completion_length": 60, "train.micro_batch_size": 2},
        **settings,
    }
    sets = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    return [*TORCHRUN, "-m", "grpo.run", str(CONTROL), *sets, *extra]


def ranks_of(process: subprocess.Popen) -> dict[int, psutil.Process]:
    found = {}
    for child in psutil.Process(process.pid).children(recursive=True):
        rank = child.environ().get("RANK") if child.is_running() else None
        if rank is not None:
            found[int(rank)] = child
    return found


def test_a_killed_rank_ends_the_others_and_the_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = subprocess.run(line(tmp_path / "whole"), cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert whole.returncode == 0, whole.stderr
    assert whole.stdout.count("reward_first=") == 1, "the first rank alone talks"
    folder, broken = tmp_path / "whole" / "control", tmp_path / "broken" / "control"
    rows = read_rows(folder / "rollouts.jsonl")
    assert [(row["step"], row["index"]) for row in rows] == [(step, index) for step in (1, 2, 3) for index in range(5)]

    process = subprocess.Popen(
        line(tmp_path / "broken"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 200
        while steps_done(broken) < 1:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        ranks = ranks_of(process)
        ranks[1].send_signal(signal.SIGKILL)
        started = time.monotonic()
        assert process.wait(60) != 0
        assert time.monotonic() - started < 10
        assert not ranks[0].is_running() or ranks[0].status() == psutil.STATUS_ZOMBIE
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert steps_done(broken) < 3, "it was killed too late"

    resumed = subprocess.run(
        line(tmp_path / "broken", "--resume"), cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert resumed.returncode == 0, resumed.stderr
    assert "after step" in resumed.stdout
    assert essence(broken) == essence(folder)
    assert weights(broken) == weights(folder)


def test_an_error_of_one_rank_is_raised_on_all_and_said_once(
    updated: tuple[dict, dict, dict], capsys: pytest.CaptureFixture[str]
) -> None:
    ranks = [found["error of the second"] for found in updated[1:]]
    assert [type(error) for error in ranks] == [ConfigError, ConfigError]
    assert [str(error) for error in ranks] == ["rank 1 has no token", ""]
    for error in ranks:
        assert exit_code(mock.Mock(side_effect=error), "") == 2
    assert capsys.readouterr().err == "error: rank 1 has no token\n"
