"""Samples from the command line: what an adapter's path may be, what is refused, and two policies side by side."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from parts import tiny_policy
from safetensors.torch import load_file, save_file
from small_runs import ROOT, SMALL, warm_start_is_cached  # noqa: F401 - a fixture

from grpo import checkpoint
from grpo.folder import read_rows
from grpo.paint import main
from grpo.policy import Policy
from render.errors import UserError

CONTROL = ROOT / "configs" / "control.toml"


def saved(folder: Path, policy: Policy) -> Path:
    """A run folder with a checkpoint of a policy that has learnt something."""
    with torch.no_grad():
        for weight in policy.trainable().values():
            weight.add_(0.5)
    state = {"base": checkpoint.fingerprint(policy)}
    optimizer = torch.optim.AdamW(policy.trainable().values())
    return checkpoint.save(folder / "checkpoints", 7, policy, optimizer, state)


def test_a_run_a_checkpoint_and_its_adapter_are_all_the_same_weights(tmp_path: Path) -> None:
    policy = tiny_policy()
    place = saved(tmp_path / "mine", policy)
    for path in (tmp_path / "mine", place, place / "adapter"):
        assert checkpoint.find(path) == (place.resolve(), "mine_step_0007")
        other = tiny_policy()
        checkpoint.load_weights(checkpoint.find(path)[0], other, checkpoint.fingerprint(other))
        assert all(torch.equal(weight, other.trainable()[name]) for name, weight in policy.trainable().items())
    alone = tmp_path / "alone"
    (place / "adapter").rename(alone)
    assert checkpoint.find(alone) == (alone.resolve(), "alone")
    with pytest.raises(UserError, match=r"neither an adapter .* nor a checkpoint .* nor a run folder"):
        checkpoint.find(tmp_path)


def test_weights_of_another_base_or_with_another_tensor_are_refused(tmp_path: Path) -> None:
    policy = tiny_policy()
    place = saved(tmp_path, policy)
    base = checkpoint.fingerprint(policy)
    other = tiny_policy(seed=1)
    with pytest.raises(UserError, match="was trained on other base weights"):
        checkpoint.load_weights(place, other, checkpoint.fingerprint(other))
    described = place / "adapter" / "adapter_config.json"
    written = described.read_text()
    described.write_text(written.replace('"lora_alpha": 8', '"lora_alpha": 16'))
    with pytest.raises(UserError, match=r"the adapter has alpha 16, \[lora\] alpha says 8"):
        checkpoint.load_weights(place, policy, base)
    described.write_text(written)
    file = place / "adapter" / "adapter_model.safetensors"
    tensors = load_file(file)
    name = sorted(tensors)[0]
    for changed_tensors in (
        {key: value for key, value in tensors.items() if key != name},
        {**tensors, "base_model.model.more": torch.zeros(1)},
    ):
        save_file(changed_tensors, file)
        with pytest.raises(UserError, match="the adapter does not fit"):
            checkpoint.load_weights(place, policy, base)
    file.unlink()
    with pytest.raises(UserError) as caught:
        checkpoint.load_weights(place, policy, base)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "-n: at least 1, not 0"),
        (["--subject", " "], "--subject is empty"),
        (["--adapter", "nowhere"], "nowhere: neither an adapter"),
        (["--adapter", "base", "--adapter", "base"], "one policy, or two different ones, not base, base"),
        (["--set", "sample.tmperature=2"], "did you mean temperature?"),
        (["-o", str(ROOT / "configs")], "the folder is not empty"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CONTROL), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def run(module: str, *arguments: object) -> list[str]:
    line = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_base_and_trained_policy_paint_side_by_side_from_the_same_seeds(tmp_path: Path) -> None:
    """A step of the control task without a browser, then real paintings of it; the judge is not at hand."""
    sets = [f"--set={key}={value}" for key, value in SMALL.items()]
    run("grpo.run", CONTROL, *sets, "--set=run.steps=1", "--set=train.warmup_steps=0", f"--set=run.folder={tmp_path}")
    trained, folder = tmp_path / "control", tmp_path / "samples"
    assert (trained / "sheets" / "step_0001.png").read_bytes().startswith(b"\x89PNG")
    assert not list((trained / "paintings").iterdir())
    output = run(
        "grpo.paint", trained / "config.toml", "--adapter", "base", "--adapter", trained, "-n", 4, "-o", folder,
        "--subject", "a wild rose in loose watercolour", "--set=reward.task=paint", "--set=reward.judge=vlm",
        "--set=reward.vlm.key_variable=NO_SUCH_TOKEN", "--set=sample.max_completion_length=320",
    )  # fmt: skip
    fields = dict(field.split("=") for field in output[-1].split(" "))
    names = ["base", "control_step_0001"]
    assert fields["policies"] == ",".join(names)
    assert fields["samples"] == "4,4"
    assert fields["reward"] == "-,-"  # paid for the judge, who is not at hand
    assert sum(line.startswith("without judge: judge: no token") for line in output) == 1
    assert (folder / "side_by_side.png").read_bytes().startswith(b"\x89PNG")
    assert "distinct sketches" in (folder / "samples.txt").read_text()
    for name in names:
        rows = read_rows(folder / name / "rollouts.jsonl")
        assert {row["subject"] for row in rows} == {"a wild rose in loose watercolour"}
        assert len(rows) == 4
        painted = [row for row in rows if (row["painting"] or {}).get("outcome") == "painted"]
        assert len(list((folder / name / "paintings").iterdir())) == len(painted)
        assert fields["valid"].split(",")[names.index(name)] == str(len(painted))
        for row in painted:
            assert (row["reward"], row["reason"]) == (None, "judge")
            assert row["terms"]["preference"] is not None
    assert list((folder / "base" / "paintings").iterdir())
    first, second = (read_rows(folder / name / "rollouts.jsonl") for name in names)
    assert [row["prompt_ids"] for row in first] == [row["prompt_ids"] for row in second]
