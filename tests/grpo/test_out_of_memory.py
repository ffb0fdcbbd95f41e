"""When the device's memory is short: the same update in smaller micro-batches, and sampling that goes on in halves."""

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from parts import changed, mix_of, tiny_policy

from grpo import checkpoint
from grpo.advantage import advantages
from grpo.config import Config
from grpo.journal import Journal
from grpo.metrics import COLUMNS
from grpo.policy import Policy
from grpo.rollout import Collector, Rollout
from grpo.trainer import Trainer
from grpo.update import Update, Updater
from render.errors import UserError
from render.settings import RenderSettings
from reward.base import Verdict
from reward.gate import Gate
from reward.pool import Pool


def settings(**tables: dict) -> Config:
    base = changed(Config(), run={"steps": 3}, sample={"group_size": 4, "max_completion_length": 16})
    base = changed(base, train={"learning_rate": 0.01, "warmup_steps": 0, "micro_batch_size": 4})
    return changed(base, **tables)


def limit(policy: Policy, fits: Callable[[int, int], bool]) -> list[int]:
    """The policy's device is full when not fits(rows, number of the pass); returns the rows of every pass, as they
    come."""
    passes: list[int] = []

    def full(module: Any, args: Any, kwargs: Any) -> None:
        passes.append(len(kwargs["input_ids"]))
        if not fits(passes[-1], len(passes)):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    policy.model.get_base_model().get_decoder().register_forward_pre_hook(full, with_kwargs=True)
    return passes


def rollouts_of(config: Config) -> tuple[list[Rollout], list]:
    rollouts = []
    for index, reward in enumerate([0.1, 0.9, 0.4, 0.2]):
        ids = tuple(torch.randint(3, 200, (3 + 2 * index,), generator=torch.Generator().manual_seed(index)).tolist())
        rollouts.append(Rollout(1, index, 0, "a flower", (1, 40, 41, 2), ids, True, ""))
        rollouts[-1].verdict = Verdict(reward, "scored")
    values, groups = advantages([rollout.reward for rollout in rollouts], 4)
    for rollout, value in zip(rollouts, values, strict=True):
        rollout.advantage = value
    return rollouts, groups


def updated(config: Config, fits: Callable[[int, int], bool]) -> tuple[Updater, Update, list[int], list[str]]:
    policy, lines = tiny_policy(), []
    for name, weight in policy.trainable().items():
        if "lora_B" in name:  # away from zero, so that the reference is another policy
            torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(1))
    passes = limit(policy, fits)
    updater = Updater(config, policy, lines.append)
    update = updater.update(*rollouts_of(config), 1)
    return updater, update, passes, lines


@pytest.mark.parametrize(
    ("fits", "passes"),
    [
        (lambda rows, number: rows <= 1, [4, 2, 1, 1, 1, 1]),
        # Full in a later micro-batch: what the earlier ones left in the gradients must not stay.
        (lambda rows, number: number != 1 and (rows, number) != (2, 3), [4, 2, 2, 1, 1, 1, 1]),
    ],
)
def test_the_redone_update_is_the_update_to_the_bit(fits: Callable[[int, int], bool], passes: list[int]) -> None:
    updater, update, seen, lines = updated(settings(), fits)
    assert seen == passes
    assert updater.micro_batch_size == 1
    assert [line.split()[-1] for line in lines] == ["2", "1"]
    expected, told, _, _ = updated(settings(train={"micro_batch_size": 1}), lambda rows, number: True)
    assert update == told
    for name, weight in expected.policy.trainable().items():
        assert torch.equal(weight, updater.policy.trainable()[name]), name


def test_memory_that_ends_between_two_updates_does_not_repeat_the_first() -> None:
    config = settings(train={"num_iterations": 2, "beta": 0.1, "top_entropy_quantile": 0.5})
    # Passes: old log-probabilities, reference, first update, second update (too large), and that again in halves.
    updater, update, seen, _ = updated(config, lambda rows, number: number != 4)
    assert seen == [4, 4, 4, 4, 2, 2]
    expected, told, _, _ = updated(config, lambda rows, number: True)
    assert update.updates == told.updates == 2
    assert update.stats.means()["kl"] == pytest.approx(told.stats.means()["kl"], rel=1e-4)
    for name, weight in expected.policy.trainable().items():
        torch.testing.assert_close(weight, updater.policy.trainable()[name], atol=1e-5, rtol=1e-4)


def test_what_the_failed_try_held_is_free_before_the_next() -> None:
    policy, held, alive = tiny_policy(), [], []
    decoder = policy.model.get_base_model().get_decoder()

    def before(module: Any, args: Any, kwargs: Any) -> None:
        alive.append(sum(tensor() is not None for tensor in held))

    def after(module: Any, args: Any, output: Any) -> None:
        held.append(weakref.ref(output.last_hidden_state))
        if len(held) == 1:
            raise torch.OutOfMemoryError("full")

    decoder.register_forward_pre_hook(before, with_kwargs=True)
    decoder.register_forward_hook(after)
    config = settings()
    Updater(config, policy).update(*rollouts_of(config), 1)
    assert alive[:2] == [0, 0]


def test_with_one_rollout_the_line_says_which_setting_to_change() -> None:
    with pytest.raises(UserError, match=r"one rollout .*gradient_checkpointing.*max_completion_length \(16\)") as found:
        updated(settings(), lambda rows, number: False)
    assert "\n" not in str(found.value)


def test_a_full_optimizer_is_not_redone() -> None:
    config, policy = settings(), tiny_policy()
    updater = Updater(config, policy)

    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("full")

    updater.optimizer.register_step_pre_hook(full)
    with pytest.raises(UserError, match=r"optimizer's own step.*adamw8bit"):
        updater.update(*rollouts_of(config), 1)


def test_other_errors_are_not_taken_for_it() -> None:
    policy = tiny_policy()

    def broken(*_: Any) -> None:
        raise RuntimeError("another fault")

    policy.model.get_base_model().get_decoder().register_forward_pre_hook(broken)
    with pytest.raises(RuntimeError, match="another fault"):
        Updater(settings(), policy).update(*rollouts_of(settings()), 1)


# --- sampling ---------------------------------------------------------------------------------------------------


def drawn(config: Config, fits: Callable[[int, int], bool]) -> tuple[Collector, list[Rollout], list[int], list[str]]:
    policy, lines = tiny_policy(), []
    with torch.no_grad():
        for weight in policy.model.parameters():
            if weight.dim() > 1:
                weight.mul_(4)  # what comes next depends on more than the token before
    if config.sample.top_k != 1:
        policy.eos_ids = (2, *range(100, 130))  # rows end at different tokens
    passes = limit(policy, fits)
    gate = Gate(RenderSettings().methods)
    mix = mix_of(lambda candidate: 0.5, gate)
    collector = Collector(config, policy, None, gate, mix, lambda rollout: None, say=lines.append)
    return collector, collector.collect(1, 1, ()).rollouts, passes, lines


GREEDY = settings(
    sample={"prompts_per_step": 2, "top_k": 1},
    subject={"name": ("a rose", "two old trees in the rain")},
    prompt={"system": "short"},
)


def test_sampling_goes_on_in_halves_from_the_token_it_had_reached() -> None:
    # Only the most likely token can be drawn, so that the random numbers do not matter: the tokens are the same ones.
    collector, rollouts, passes, lines = drawn(GREEDY, lambda rows, number: rows <= 4 or number < 6)
    _, expected, all_at_once, _ = drawn(GREEDY, lambda rows, number: True)
    assert [rollout.completion_ids for rollout in rollouts] == [rollout.completion_ids for rollout in expected]
    assert len({rollout.completion_ids for rollout in expected}) == 2
    assert set(all_at_once) == {8}
    assert passes[:6] == [8] * 6
    assert max(passes[6:]) <= 4
    assert collector.rows_at_once == 4
    assert "after 5 tokens" in lines[0]


def test_a_rollout_that_was_handed_over_is_kept_and_no_other_loses_its_beginning() -> None:
    config = settings(sample={"group_size": 8})
    _, rollouts, _, _ = drawn(config, lambda rows, number: rows <= 4 or number < 6)
    _, expected, _, _ = drawn(config, lambda rows, number: True)
    early = [rollout for rollout in expected if len(rollout.completion_ids) <= 5 and rollout.finished]
    assert 0 < len(early) < 8
    for mine, theirs in zip(rollouts, expected, strict=True):
        assert mine.completion_ids[:5] == theirs.completion_ids[:5]
        assert len(mine.completion_ids) <= 16
        assert mine.finished == (mine.completion_ids[-1] in (2, *range(100, 130)))
        if theirs in early:
            assert mine.completion_ids == theirs.completion_ids


def test_one_row_that_does_not_fit_is_one_line() -> None:
    with pytest.raises(UserError, match=r"one rollout of 0 tokens.*max_completion_length \(16\)"):
        drawn(settings(), lambda rows, number: False)


def test_a_prompt_of_another_length_in_the_batch_changes_nothing() -> None:
    together = drawn(GREEDY, lambda rows, number: True)[1]
    apart = drawn(changed(GREEDY, sample={"rows_at_once": 4}), lambda rows, number: True)[1]
    assert len({len(rollout.prompt_ids) for rollout in together}) == 2
    assert [rollout.completion_ids for rollout in together] == [rollout.completion_ids for rollout in apart]


# --- found at the start -----------------------------------------------------------------------------------------


def trainer_of(config: Config, folder: Path, lines: list[str]) -> Trainer:
    policy, journal, gate = tiny_policy(), Journal(folder, COLUMNS), Gate(RenderSettings().methods)
    collector = Collector(config, policy, None, gate, mix_of(lambda candidate: 0.5, gate), journal.rollout)
    return Trainer(config, policy, collector, Pool((), "test"), journal, say=lines.append)


def test_the_trial_at_the_start_finds_the_micro_batch_and_moves_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    config = settings(train={"micro_batch_size": 0})  # 0 = as many as fit
    trainer = trainer_of(config, tmp_path, lines)
    passes, lengths = limit(trainer.policy, lambda rows, number: rows <= 2), []
    trainer.policy.model.get_base_model().get_decoder().register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    before = {name: weight.detach().clone() for name, weight in trainer.policy.trainable().items()}
    trainer.try_out([1, 40, 41], free=1e12)
    assert passes == [4, 2, 2]
    assert set(lengths) == {3 + config.sample.max_completion_length}
    assert (trainer.updater.micro_batch_size, trainer.collector.rows_at_once) == (2, 4)
    assert [line.split(":")[0] for line in lines] == ["in the trial at the start"]
    for name, weight in trainer.policy.trainable().items():
        assert torch.equal(weight, before[name])
        assert weight.grad is None
    trainer.updater.update(*rollouts_of(config), 1)
    assert passes[3:] == [2, 2]


def test_rows_at_once_come_from_the_memory_that_is_free(tmp_path: Path) -> None:
    lines: list[str] = []
    trainer = trainer_of(settings(), tmp_path, lines)
    # 2 layers, 2 heads of 8, keys and values in float32, 19 tokens; a half more for the layer that grows.
    trainer.try_out([1, 40, 41], free=3.1 * (2 * 2 * 8 * 2 * 4 * 19) * 1.5)
    assert trainer.collector.rows_at_once == 3
    assert "3 rows at once" in lines[0]


# --- remembered -------------------------------------------------------------------------------------------------


def test_the_sizes_are_in_the_metrics_and_a_resumed_run_starts_with_them(tmp_path: Path) -> None:
    def made(size: int = 4) -> Trainer:
        return trainer_of(settings(train={"micro_batch_size": size}), tmp_path, [])

    first = made()
    first.updater.micro_batch_size, first.collector.rows_at_once = 2, 1
    first.save()
    assert checkpoint.latest(first.checkpoints).name == "step_0000"
    resumed = made()
    assert (resumed.updater.micro_batch_size, resumed.collector.rows_at_once) == (4, 4)
    resumed.resume()
    assert (resumed.updater.micro_batch_size, resumed.collector.rows_at_once) == (2, 1)
    lowered = made(1)
    lowered.resume()
    assert lowered.updater.micro_batch_size == 1
    assert {"micro_batch_size", "rows_at_once"} <= set(COLUMNS)
