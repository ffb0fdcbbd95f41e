"""configs/judge_led.toml's own code path on two cores, with a tiny policy of the 35B's class: conditional generation, a
vision part, hybrid layers, experts. Its text weights are those of the warm-started small policy, so that it writes
sketches."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from families import VISION
from peft import AutoPeftModel
from small_runs import (
    LAPTOP,
    ROOT,
    SMALL,
    between_steps,
    complete,
    run_until,
    steps_done,
    warm_start_is_cached,  # noqa: F401 - a fixture
)
from transformers import Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

from grpo import adapter, small
from grpo import config as configs
from grpo.checkpoint import latest
from grpo.config import SampleSettings
from grpo.folder import read_rows
from grpo.logprobs import completion_logprobs
from grpo.policy import Policy, collate
from grpo.pretrained import load_pretrained
from grpo.prompt import FULL, messages

JUDGE_LED = ROOT / "configs" / "judge_led.toml"


def target_class(folder: Path) -> None:
    """The small policy's text weights in the class with vision, and its tokenizer, in one folder as on the Hub."""
    config = configs.load(LAPTOP, [f"warm_start.steps={SMALL['warm_start.steps']}"])
    text, tokenizer = small.warm_start(
        config.warm_start,
        lambda subject: messages(config.prompt.system, subject, config.subject.composition),
        cache=ROOT / ".cache" / "warm_start",
    )
    sizes = text.config.to_dict()
    model = Qwen3_5MoeForConditionalGeneration(
        Qwen3_5MoeConfig(
            text_config=sizes,
            vision_config=VISION | {"out_hidden_size": sizes["hidden_size"]},
            tie_word_embeddings=True,
            eos_token_id=sizes["eos_token_id"],
            pad_token_id=sizes["pad_token_id"],
        )
    )
    weights = {
        name.replace("model.", "model.language_model.", 1) if name.startswith("model.") else name: weight
        for name, weight in text.state_dict().items()
    }
    lacking, odd = model.load_state_dict(weights, strict=False)
    assert odd == []
    assert all("visual" in name for name in lacking)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def greedy(model: Any, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt])
    with torch.no_grad():
        made = model.eval().generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=160, do_sample=False
        )
    return made[0, len(prompt) :].tolist()


def test_judge_led_runs_whole_on_a_tiny_model_of_the_target_class(tmp_path: Path) -> None:
    base = tmp_path / "base"
    target_class(base)
    overrides = {
        "policy.model": base,
        "policy.device": "cpu",
        "policy.dtype": "float32",
        "prompt.system": "short",  # what the small policy was warm-started on
        "reward.preference": "stand_in",
        "reward.judge": "stand_in",
        "pool.source": "embedded",
        "pool.revision": "",
        "run.steps": 3,
        "run.folder": tmp_path / "runs",
        "sample.group_size": 3,
        "sample.max_completion_length": 260,
        "train.logprob_chunk": 64,  # several chunks a completion, as with 8,192 tokens and 512
        "train.learning_rate": 2e-3,  # three steps have to show
        "train.warmup_steps": 0,
        "render.workers": 1,
        "gallery.every": 0,
    }
    sets = [part for key, value in overrides.items() for part in ("--set", f"{key}={value}")]
    line = [sys.executable, "-m", "grpo.run", str(JUDGE_LED), *sets, "--resume"]
    run = tmp_path / "runs" / "judge_led"
    assert run_until(line, between_steps(run, 1), signal.SIGINT) == 130
    stopped_after = steps_done(run)
    assert stopped_after < 3
    output = complete(line)
    assert f"after step {stopped_after}" in output
    assert "policy: Qwen3_5MoeForConditionalGeneration, " in output

    config = configs.load(run / "config.toml")
    led = configs.load(JUDGE_LED)
    assert config.reward.weights == led.reward.weights
    assert (config.train.gradient_checkpointing, config.train.micro_batch_size) == (True, 1)
    rows = read_rows(run / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert any(row["grad_norm"] > 0 for row in rows)
    rollouts = read_rows(run / "rollouts.jsonl")
    assert any(row["outcome"] == "scored" for row in rollouts)
    assert all(row["reward"] is not None for row in rollouts)
    written = json.loads((run / "policy.json").read_text())
    assert written["base"] == str(base)
    assert written["layers"] == len(written["adapted"]) == 35
    newest = latest(run / "checkpoints")
    assert newest is not None
    assert newest.name == "step_0003"

    # By peft alone, into the base's own class.
    saved = newest / "adapter"
    by_peft = AutoPeftModel.from_pretrained(saved)
    assert type(by_peft.get_base_model()) is Qwen3_5MoeForConditionalGeneration
    model, tokenizer, origin = load_pretrained(config)
    policy = Policy(model, tokenizer, config.lora, config.train.gradient_checkpointing, origin)
    first = rollouts[:2]
    batch = collate(
        [row["prompt_ids"] for row in first], [row["completion_ids"] for row in first], policy.pad_id, "cpu"
    )
    policy.model.eval()
    with torch.no_grad():
        untrained, _ = policy.logprobs(batch, 1.0, 64)
        adapter.load(saved, policy)
        trained, _ = policy.logprobs(batch, 1.0, 64)
        alone, _ = completion_logprobs(
            by_peft.eval(), batch.input_ids, batch.attention_mask, batch.completion_length, temperature=1.0, chunk=64
        )
    assert torch.equal(alone, trained)
    assert (trained - untrained).abs().max() > 1e-2

    # Merged in float32 it writes the same sketch.
    prompt = rollouts[0]["prompt_ids"]
    unmerged = greedy(policy.model, prompt)
    assert greedy(by_peft.merge_and_unload(), prompt) == unmerged
    assert "brush." in policy.decode(unmerged)

    # The config's own prompt is long; the small tokenizer takes it whole.
    full = policy.prompt_ids(messages("full", "a peach hibiscus", config.subject.composition))
    assert FULL in policy.decode(full)
    assert len(full) > 500
    completion = policy.sample(full, 2, SampleSettings(max_completion_length=5), 0)
    values, _ = policy.logprobs(collate([full] * 2, [one.ids for one in completion], policy.pad_id, "cpu"), 1.0, 64)
    assert values.isfinite().all()
