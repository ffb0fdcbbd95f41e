"""Parity with TRL's GRPOTrainer on 19 cases of frozen numbers (tests/fixtures/trl_golden.json), and proof that the
comparison can fail.

Weights follow from a formula: x = RandomState(crc32(name)).standard_normal(shape) as float32; 1 + 0.1 x for vectors,
0.2 x for the rest, 0.05 x for LoRA matrices. TRL shuffles a generation's rollouts before it cuts micro-batches; the
orders below follow from the losses of its micro-batches.
"""

import dataclasses
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import Qwen3Config, Qwen3ForCausalLM

from grpo import advantage as advantage_module
from grpo import loss as loss_module
from grpo.advantage import advantages
from grpo.logprobs import completion_logprobs
from grpo.loss import Objective, denominators, loss_mask, policy_loss

torch.set_num_threads(1)
GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures" / "trl_golden.json").read_text())
CASES = {case["name"]: case for case in GOLDEN["cases"]}
ORDERS = ((1, 2, 3, 5, 4, 7, 0, 6), (3, 7, 2, 5, 1, 6, 0, 4))  # of the first and second generation
ADVANTAGE_TOLERANCE, LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-6, 1e-5, 1e-4


def draw(name: str, shape: torch.Size) -> torch.Tensor:
    return torch.from_numpy(np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32))


def plain_name(name: str) -> str:
    return name.removeprefix("base_model.model.").replace(".base_layer", "").replace(".default", "")


def build(lora: bool) -> Any:
    config = {key: value for key, value in GOLDEN["model"].items() if key != "class"}
    model: Any = Qwen3ForCausalLM(Qwen3Config(**config)).eval()
    if lora:
        model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            x = draw(plain_name(name), weight.shape)
            weight.copy_(1 + 0.1 * x if x.dim() == 1 else (0.05 if "lora_" in name else 0.2) * x)
    return model


class Run:
    """One case, trained step by step as the trainer does it: denominators first, then micro-batch by micro-batch."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case, self.settings = case, case["settings"]
        size = self.settings["group_size"]
        self.prompts = [prompt for prompt in case["prompts"] for _ in range(size)]
        self.completions = [completion for group in case["completions"] for completion in group]
        self.rewards = [reward for group in case["rewards"] for reward in group]
        self.scored = [reward is not None for reward in self.rewards]
        self.truncated = [completion[-1] != GOLDEN["model"]["eos_token_id"] for completion in self.completions]
        self.advantages, _ = advantages(self.rewards, size, self.settings["scale_rewards"])
        self.mask_truncated = self.settings["mask_truncated"]
        self.objective = Objective(
            **{
                key: self.settings[key]
                for key in ("loss_type", "clip_low", "clip_high", "importance_sampling_level", "beta", "kl_times_ratio")
            },
        )
        self.temperature = self.settings["temperature"]
        self.count_unscored = True

    def completion_lengths(self) -> list[int]:
        return [len(completion) for completion in self.completions]

    def mask(self, rows: Sequence[int]) -> torch.Tensor:
        return loss_mask(
            [self.completion_lengths()[row] for row in rows],
            max(len(self.completions[row]) for row in rows),
            scored_B=[self.scored[row] for row in rows],
            truncated_B=[self.truncated[row] for row in rows],
            mask_truncated=self.mask_truncated,
            count_unscored=self.count_unscored,
        )

    def logprobs(self, model: Any, rows: list[int]) -> torch.Tensor:
        prompt_length = max(len(self.prompts[row]) for row in rows)
        length = max(len(self.completions[row]) for row in rows)
        input_ids = torch.zeros(len(rows), prompt_length + length, dtype=torch.long)
        attention_mask = torch.zeros_like(input_ids)
        for index, row in enumerate(rows):
            start, end = prompt_length - len(self.prompts[row]), prompt_length + len(self.completions[row])
            input_ids[index, start:end] = torch.tensor(self.prompts[row] + self.completions[row])
            attention_mask[index, start:end] = 1
        return completion_logprobs(model, input_ids, attention_mask, length, temperature=self.temperature, chunk=16)[0]

    def steps(self) -> list[dict[str, Any]]:
        model = build(self.settings["lora"])
        trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        optimizer = torch.optim.SGD(trained.values(), lr=self.settings["sgd_lr"])
        iterations, count = self.settings["num_iterations"], self.settings["micro_batches"]
        size = len(self.rewards) // count
        window = denominators(
            self.mask(range(len(self.rewards))),
            scored_B=self.scored,
            micro_batches=count,
            max_completion_length=self.settings["max_completion_length"],
            count_unscored=self.count_unscored,
        )
        results = []
        for step in range(self.settings["steps"]):
            order = ORDERS[step // iterations] if count > 1 else tuple(range(len(self.rewards)))
            cuts = [list(order[start : start + size]) for start in range(0, len(order), size)]
            if iterations > 1 and step % iterations == 0:
                with torch.no_grad():
                    old = [self.logprobs(model, rows) for rows in cuts]
            optimizer.zero_grad()
            losses = []
            for index, rows in enumerate(cuts):
                reference = None
                if self.objective.beta > 0:
                    with torch.no_grad(), model.disable_adapter():
                        reference = self.logprobs(model, rows)
                logprobs = self.logprobs(model, rows)
                loss, _ = policy_loss(
                    logprobs,
                    torch.tensor([self.advantages[row] for row in rows]),
                    self.mask(rows),
                    window,
                    self.objective,
                    old_logprobs_BT=old[index] if iterations > 1 else None,
                    reference_logprobs_BT=reference,
                )
                loss.backward()
                losses.append(loss.item())
            gradients = {plain_name(name): weight.grad for name, weight in trained.items()}
            results.append(
                {
                    "loss": sum(losses),
                    "micro_losses": losses,
                    "grad_norm": torch.stack([gradient.norm() for gradient in gradients.values()]).norm().item(),
                    "gradients": {name: gradient.clone() for name, gradient in gradients.items()},
                }
            )
            optimizer.step()
        return results


def compare(run: Run) -> None:
    """AssertionError at the first number that is not TRL's."""
    expected = [value for group in run.case["advantages"] for value in group]
    assert run.advantages == pytest.approx(expected, rel=ADVANTAGE_TOLERANCE, abs=ADVANTAGE_TOLERANCE)
    for step, (ours, theirs) in enumerate(zip(run.steps(), run.case["steps"], strict=True), start=1):
        # Micro-batches may cancel each other: the loss of the window is relative to the largest of them.
        scale = max(abs(value) for value in theirs["micro_losses"])
        for name in ("loss", "micro_losses"):
            assert ours[name] == pytest.approx(theirs[name], rel=0, abs=LOSS_TOLERANCE * scale), f"{name}, step {step}"
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=GRADIENT_TOLERANCE), f"step {step}"
        for name, (norm, projection) in theirs["grads"].items():
            gradient = ours["gradients"][name]
            probe = torch.from_numpy(
                np.random.RandomState(zlib.crc32(f"probe:{name}".encode())).standard_normal(gradient.shape)
            )
            assert gradient.norm().item() == pytest.approx(norm, rel=GRADIENT_TOLERANCE), f"{name}, step {step}"
            found = (gradient.double() * probe).sum().item()
            # The projection of a vector on a random probe is of the size of its norm.
            assert found == pytest.approx(projection, abs=GRADIENT_TOLERANCE * max(norm, abs(projection))), name


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_trls(name: str) -> None:
    compare(Run(CASES[name]))


# --- controls: each of these mistakes must break the cases that it touches, and no others ------------------------

NONE_CASES = {name for name, case in CASES.items() if None in [reward for group in case["rewards"] for reward in group]}
LORA_CASES = {name for name, case in CASES.items() if case["settings"]["lora"]}


def fails(case: dict[str, Any], change: Callable[[Run], None]) -> bool:
    run = Run(case)
    change(run)
    try:
        compare(run)
    except AssertionError:
        return True
    return False


def with_objective(**values: Any) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        run.objective = dataclasses.replace(run.objective, **values)

    return change


def without_temperature(run: Run) -> None:
    run.temperature = 1.0


def with_truncated(run: Run) -> None:
    run.mask_truncated = False


def without_unscored(run: Run) -> None:
    run.count_unscored = False


def flipped_kl_ratio(run: Run) -> None:
    run.objective = dataclasses.replace(run.objective, kl_times_ratio=not run.objective.kl_times_ratio)


CONTROLS: dict[str, tuple[Callable[[Run], None], set[str]]] = {
    "no temperature": (without_temperature, {"temperature 0.7"}),
    "symmetric clip": (
        with_objective(clip_high=0.2),
        {"two iterations, clipped", "sequence-level ratio, two iterations"},
    ),
    "ratio of a token": (with_objective(importance_sampling_level="token"), {"sequence-level ratio, two iterations"}),
    "k3 with and without ratio exchanged": (flipped_kl_ratio, LORA_CASES),
    "k1": (with_objective(kl_estimator="k1"), LORA_CASES),
    "k2": (with_objective(kl_estimator="k2"), LORA_CASES),
    "truncated completions kept": (with_truncated, {"masked truncated"}),
    "bnpo over the window": (with_objective(loss_type="dapo"), {"grpo", "bnpo", "dr_grpo"}),
    "unscored rollouts left out, as outside of comparisons": (without_unscored, NONE_CASES),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_a_mistake_breaks_exactly_its_cases(control: str) -> None:
    change, expected = CONTROLS[control]
    assert {name for name, case in CASES.items() if fails(case, change)} == expected


def test_population_deviation_breaks_every_scaled_case(monkeypatch: pytest.MonkeyPatch) -> None:
    def population(values: list[float]) -> float:
        return float(np.std(values)) if len(values) > 1 else 0.0

    monkeypatch.setattr(advantage_module, "_deviation", population)
    expected = {name for name, case in CASES.items() if case["settings"]["scale_rewards"] != "none"}
    assert {name for name, case in CASES.items() if fails(case, lambda run: None)} == expected


def test_k3_with_the_sign_of_d_exchanged_breaks_the_lora_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "_kl", lambda d, estimator: torch.expm1(-d) + d)
    assert {name for name, case in CASES.items() if fails(case, lambda run: None)} == LORA_CASES


def test_a_mask_that_loses_the_end_of_sequence_breaks_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = Run.completion_lengths
    monkeypatch.setattr(Run, "completion_lengths", lambda run: [length - 1 for length in lengths(run)])
    assert all(fails(case, lambda run: None) for case in CASES.values())
