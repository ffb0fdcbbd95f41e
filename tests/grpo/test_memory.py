"""The memory plan: parts worked out by hand, and a plan that cannot fit is refused before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grpo import config as configs
from grpo.check import missing, refuse_missing
from grpo.memory import billions, plan, rows_that_fit
from grpo.size import model_config
from render.errors import SetupError

ROOT = Path(__file__).parents[2]
JUDGE_LED = ROOT / "configs" / "judge_led.toml"


def gpu_of(gigabytes: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda index: SimpleNamespace(total_memory=int(gigabytes * 1e9))
    )


def test_the_parts_of_the_recipes_plan_by_hand() -> None:
    parts = plan(configs.load(JUDGE_LED))
    tokens = 1024 + 8192
    assert parts["policy"] == pytest.approx(2 * 35.114, rel=1e-3)
    assert parts["adapter and optimizer"] == pytest.approx(22_477_440 * 16 / 1e9)
    assert parts["keys and values"] == pytest.approx(8 * tokens * 10 * 2 * 2 * 256 * 2 / 1e9)
    assert parts["recurrent states"] == pytest.approx(8 * 30 * 32 * 128 * 128 * 4 / 1e9)
    assert parts["logits"] == pytest.approx((4 * 512 * 248_320 * 4 + 128 * 2**20) / 1e9)
    assert 100 < sum(parts.values()) < 115


@pytest.mark.parametrize(
    ("setting", "part", "less"),
    [
        ("sample.rows_at_once=4", "keys and values", 0.5),
        ("sample.max_completion_length=3584", "activations", 0.5),
        ("train.optimizer=adamw8bit", "adapter and optimizer", 10 / 16),
        ("reward.hpsv3.quantization=8bit", "HPSv3", 11.4 / 17.9),
        ("train.logprob_chunk=128", "logits", (128 * 16 * 248_320 + 2**27) / (512 * 16 * 248_320 + 2**27)),
    ],
)
def test_a_setting_changes_its_part_and_no_other(setting: str, part: str, less: float) -> None:
    before, after = plan(configs.load(JUDGE_LED)), plan(configs.load(JUDGE_LED, [setting]))
    assert after[part] == pytest.approx(before[part] * less, rel=0.02)
    others = set(before) - {part}
    if not setting.startswith("sample."):  # rows and length are in several parts
        assert all(after[name] == before[name] for name in others)


def test_checkpointing_is_what_makes_it_fit() -> None:
    without = plan(configs.load(JUDGE_LED, ["train.gradient_checkpointing=false"]))
    assert without["activations"] > 10 * plan(configs.load(JUDGE_LED))["activations"]


def test_as_many_rows_fit_as_the_plan_counts_for_them() -> None:
    text = model_config(configs.load(JUDGE_LED)).get_text_config()
    one = sum(
        plan(configs.load(JUDGE_LED, ["sample.rows_at_once=1"]))[part]
        for part in ("keys and values", "recurrent states")
    )
    twice = 1 + 1 / 40  # one of 40 layers is there twice while its cache grows
    for rows in (1, 3, 8):
        assert rows_that_fit(text, 1024 + 8192, 2, rows * one * 1e9 * twice * 1.001) == rows
        assert rows_that_fit(text, 1024 + 8192, 2, rows * one * 1e9 * twice * 0.999) == max(1, rows - 1)


def test_the_small_policy_has_no_plan() -> None:
    assert plan(configs.load(ROOT / "configs" / "laptop.toml")) is None


def test_a_plan_that_cannot_fit_is_refused_with_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    config = configs.load(JUDGE_LED)
    gpu_of(80, monkeypatch)
    with pytest.raises(SetupError, match=r"needed on the GPU, which has 80; change \[sample\] rows_at_once or"):
        refuse_missing(config)
    gpu_of(141, monkeypatch)
    assert not [part for part in missing(config) if part.text.startswith("memory")]


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("Qwen/Qwen3.5-35B-A3B", 35.0),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", 30.0),
        ("meta-llama/Llama-3.2-1.5B", 1.5),
        ("small", None),
        ("some/folder-7Bit", None),
        ("/models/Qwen3-8B", 8.0),
    ],
)
def test_the_size_of_a_model_is_read_from_its_name(model: str, size: float | None) -> None:
    assert billions(model) == size
