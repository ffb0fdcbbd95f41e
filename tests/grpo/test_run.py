"""The command line: mistakes in one line, plans without training, and a real run that dies and comes back the same."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from hub_server import TOKEN, HubStandIn
from small_runs import (
    LAPTOP,
    ROOT,
    SMALL,
    between_steps,
    command,
    complete,
    middle_of_a_step,
    run_until,
    steps_done,
    warm_start_is_cached,  # noqa: F401 - a fixture
)

from grpo import config as configs
from grpo.checkpoint import latest
from grpo.folder import read_rows
from grpo.run import main


def essence(folder: Path) -> tuple[list, list]:
    """What must be equal in two runs: all but times, and which worker painted."""
    metrics = [
        {key: value for key, value in row.items() if "time" not in key} for row in read_rows(folder / "metrics.jsonl")
    ]
    rollouts = []
    for row in read_rows(folder / "rollouts.jsonl"):
        del row["timings"]
        for key in ("timings", "worker", "attempt"):
            (row["painting"] or {}).pop(key, None)
        rollouts.append(row)
    return metrics, rollouts


def weights(folder: Path) -> dict[str, bytes]:
    path = latest(folder / "checkpoints")
    assert path is not None
    return {file.name: file.read_bytes() for file in path.rglob("*.safetensors")}


def browsers_of(marker: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        if (process.info["environ"] or {}).get("RUN_MARKER") == marker:
            found.append(process.pid)
    return found


def test_killed_at_any_moment_and_resumed_it_is_the_same_run_to_the_bit(tmp_path: Path) -> None:
    """With 8-bit moments, an adapter and two updates a step; other optimizers are in test_trainer.py."""
    settings = {
        "train.optimizer": "adamw8bit",
        "train.num_iterations": 2,
        "train.learning_rate": 1e-3,
        "lora.enabled": "true",
    }
    complete(command(tmp_path / "whole", **settings))
    whole = tmp_path / "whole" / "laptop"
    assert any(row["updates"] for row in read_rows(whole / "metrics.jsonl"))

    broken = tmp_path / "broken" / "laptop"
    line = command(tmp_path / "broken", "--resume", **settings)
    for moment, steps in ((middle_of_a_step, 0), (between_steps, 2)):
        assert run_until(line, moment(broken, steps), signal.SIGKILL) == -signal.SIGKILL
    assert "after step" in complete(line)

    assert essence(broken) == essence(whole)
    assert weights(broken) == weights(whole)
    assert (broken / "metrics.csv").read_text().count("\n") == SMALL["run.steps"] + 1


def test_a_run_stops_after_its_step_when_asked_and_leaves_no_process(tmp_path: Path) -> None:
    marker = f"{os.getpid()}-{time.time()}"
    os.environ["RUN_MARKER"] = marker
    try:
        folder = tmp_path / "laptop"
        line = command(tmp_path)
        assert run_until(line, middle_of_a_step(folder, 0), signal.SIGINT) == 130
        assert steps_done(folder) == 1
        assert latest(folder / "checkpoints").name == "step_0001"
        assert not (folder / "rollouts.partial.jsonl").exists()
        end = time.monotonic() + 5
        while browsers_of(marker) and time.monotonic() < end:
            time.sleep(0.1)
        assert browsers_of(marker) == []
    finally:
        del os.environ["RUN_MARKER"]


def test_a_finished_run_has_everything_and_its_last_line_is_for_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"run.steps": 2, "sample.group_size": 4, "probe.samples": 2, "gallery.every": 2, "publish.to": "ada/b"}
    with HubStandIn() as hub:
        for name, value in {"ENDPOINT": hub.url, "TOKEN": TOKEN, "HUB_DISABLE_XET": "1"}.items():
            monkeypatch.setenv(f"HF_{name}", value)
        output = complete(command(tmp_path, **settings))
        up = {kind: set(hub.files(kind, name)) for kind, name in (("model", "ada/b"), ("dataset", "ada/b-rollouts"))}
    assert {"adapter_model.safetensors", "adapter_config.json", "README.md", "metrics.csv"} <= up["model"]
    assert {f"rollouts/step_{step:04d}/metadata.jsonl" for step in (1, 2)} <= up["dataset"]
    folder = tmp_path / "laptop"
    fields = dict(field.split("=") for field in output.strip().splitlines()[-1].split(" "))
    assert list(fields) == [
        "steps", "reward_first", "reward_last", "gain", "scored", "rejected", "unscored", "seconds", "run",
    ]  # fmt: skip
    assert (fields["steps"], fields["run"], fields["unscored"]) == ("2", str(folder), "0")
    assert int(fields["scored"]) + int(fields["rejected"]) == 8
    assert "(stand-in)" in output
    assert "on-policy" in output
    assert "probe of 2 samples, before -> after: reward " in output
    assert (folder / "probe" / "before_after.png").read_bytes().startswith(b"\x89PNG")
    assert f"gallery: {(folder / 'gallery' / 'index.html').as_uri()}, " in output
    assert len(list((folder / "gallery" / "thumbs").rglob("step_*"))) == len(list((folder / "paintings").iterdir()))
    rollouts = read_rows(folder / "rollouts.jsonl")
    for row in rollouts:
        name = f"step_{row['step']:04d}_{row['index']:02d}"
        assert (folder / "sketches" / f"{name}.js").exists() == row["sketch"]
        if row["outcome"] == "scored":
            assert (folder / "paintings" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert row["painting"]["shapes"] > 0
    assert sorted(path.name for path in (folder / "sheets").iterdir()) == ["step_0001.png", "step_0002.png"]
    means = [row["reward"] for row in read_rows(folder / "metrics.jsonl")]
    for step, mean in enumerate(means, 1):
        rewards = [row["reward"] for row in rollouts if row["step"] == step and row["reward"] is not None]
        assert mean == pytest.approx(sum(rewards) / len(rewards))
        for row in rollouts:
            if row["step"] == step and row["reward"] is not None:
                assert row["advantage"] == pytest.approx(row["reward"] - mean)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(ROOT / "configs" / "lapptop.toml")], "there is no such config file"),
        ([str(LAPTOP), "--set", "run.stepss=3"], "[run] stepss is not a setting; did you mean steps?"),
        ([str(LAPTOP), "--set", "policy.device=cuda"], 'device is "cuda"'),
        ([str(LAPTOP), "--resume", "nowhere/at/all"], "not a run folder"),
    ],
)
def test_a_mistake_ends_in_one_line_and_no_traceback(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_resuming_with_other_settings_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "laptop"
    folder.mkdir()
    (folder / "config.toml").write_text(configs.dump(configs.load(LAPTOP)))
    line = [str(LAPTOP), "--set", f"run.folder={tmp_path}", "--set", "train.learning_rate=0.5", "--resume"]
    assert main(line) == 2
    assert "train.learning_rate is 0.5 now and was" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["laptop", "judge_led", "hps_led", "hps_only"])
def test_check_prints_the_plan_and_what_is_missing_and_starts_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    path = ROOT / "configs" / f"{name}.toml"
    assert main([str(path), "--check", "--set", f"run.folder={tmp_path / 'runs'}"]) == 0
    output = capsys.readouterr().out
    missing = [line for line in output.splitlines() if line.startswith("missing: ")]
    assert "the config is valid" in output
    assert not (tmp_path / "runs").exists()
    if name == "laptop":
        assert missing == []
        return
    for part in (
        "policy weights: Qwen/Qwen3.5-35B-A3B",
        "the weights of HPSv3 are not here (16.6 GB): hf download MizzenAI/HPSv3 HPSv3.safetensors",
        "HPSv3's base",
        "judge: no token; set the environment variable HF_TOKEN",
        "HuggingEnvs/watercolour-reference-pool",
        "GB are needed on a GPU, and there is none",
    ):
        assert sum(part in line for line in missing) == 1, part
    # 8 paintings beside 4 references in both orders, in every step.
    plan = " ".join(output.replace("│", " ").split())
    assert f"at most {configs.load(path).run.steps * 8 * 4 * 2:,} calls" in plan
    assert "in money" in plan


def test_the_resolved_config_in_the_run_folder_is_json_free_toml_that_loads_again(tmp_path: Path) -> None:
    config = configs.load(LAPTOP, ["run.steps=7"])
    (tmp_path / "config.toml").write_text(configs.dump(config))
    assert configs.load(tmp_path / "config.toml") == config
    json.dumps(configs.flatten(config))
