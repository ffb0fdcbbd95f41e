"""The loop around the model: who is counted, what moves the weights, what a stopped run goes on with."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from parts import GOOD, Painter, Script, changed, mix_of, painted, tiny_policy

from grpo import checkpoint
from grpo.advantage import advantages
from grpo.config import Config
from grpo.folder import read_rows
from grpo.journal import Journal
from grpo.metrics import COLUMNS
from grpo.policy import Policy
from grpo.rollout import Collector, Rollout
from grpo.trainer import Stopped, Trainer, Unscored
from render.errors import UserError
from render.painting import Outcome, Painting
from render.settings import RenderSettings
from reward.base import Candidate, Reference, Score, Verdict
from reward.gate import Gate
from reward.mix import Mix
from reward.pool import Pool

POOL = Pool(tuple(Reference(f"{tier}_{n}", tier, b"") for tier in ("love", "okay") for n in range(3)), "test")


def settings(**tables: dict) -> Config:
    base = changed(Config(), run={"steps": 3}, sample={"group_size": 4, "max_completion_length": 16})
    base = changed(base, train={"learning_rate": 0.01, "warmup_steps": 0, "micro_batch_size": 2})
    return changed(base, **tables)


def rollout(index: int, reward: float | None, length: int = 5, finished: bool = True) -> Rollout:
    generator = torch.Generator().manual_seed(index)
    ids = tuple(torch.randint(3, 200, (length,), generator=generator).tolist())
    made = Rollout(1, index, 0, "a flower", (1, 40, 41, 2), ids, finished, "")
    made.verdict = Verdict(reward, "scored" if reward is not None else "unscored")
    return made


def trainer(config: Config, folder: Path, policy: Policy | None = None, collector: Collector | None = None) -> Trainer:
    journal, policy = Journal(folder, COLUMNS), policy or tiny_policy()
    if collector is None:
        gate = Gate(RenderSettings().methods)
        collector = Collector(config, policy, None, gate, mix_of(lambda candidate: 0.5, gate), journal.rollout)
    return Trainer(config, policy, collector, POOL, journal)


def weights_after(config: Config, folder: Path, rewards: list[float | None], policy: Policy | None = None) -> dict:
    made = trainer(config, folder, policy)
    rollouts = [rollout(index, reward, 3 + 2 * index) for index, reward in enumerate(rewards)]
    values, groups = advantages([r.reward for r in rollouts], len(rollouts), config.train.scale_rewards)
    for one, value in zip(rollouts, values, strict=True):
        one.advantage = value
    made.updater.update(rollouts, groups, 1)
    return {name: weight.detach().clone() for name, weight in made.policy.trainable().items()}


@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "dr_grpo"])
def test_the_update_does_not_depend_on_the_cut_into_micro_batches(loss_type: str, tmp_path: Path) -> None:
    # Plain Adam divides by the gradient's size, which would hide a wrong scale: the bound is made far larger instead.
    results = []
    for size in (1, 2, 3, 4):
        config = settings(train={"micro_batch_size": size, "loss_type": loss_type, "max_grad_norm": 0.0})
        made = trainer(config, tmp_path / str(size))
        rollouts = [rollout(index, reward, 3 + 4 * index) for index, reward in enumerate([0.1, 0.9, 0.4, 0.2])]
        values, groups = advantages([r.reward for r in rollouts], 4)
        for one, value in zip(rollouts, values, strict=True):
            one.advantage = value
        results.append(made.updater.update(rollouts, groups, 1).grad_norm)
    assert results == pytest.approx([results[0]] * 4, rel=1e-5)
    assert results[0] > 0


def test_an_unscored_rollout_changes_nothing_at_all(tmp_path: Path) -> None:
    with_it = weights_after(settings(sample={"group_size": 4}), tmp_path / "a", [0.1, 0.9, 0.4, None])
    without = weights_after(settings(sample={"group_size": 3}), tmp_path / "b", [0.1, 0.9, 0.4])
    for name, weight in with_it.items():
        torch.testing.assert_close(weight, without[name], atol=1e-7, rtol=0)


@pytest.mark.parametrize("rewards", [[0.5] * 4, [None, None, None, 0.5]])
def test_a_dead_step_leaves_weights_and_moments_alone_even_with_momentum(rewards: list, tmp_path: Path) -> None:
    config = settings()
    made = trainer(config, tmp_path)
    alive = [rollout(index, reward) for index, reward in enumerate([0.1, 0.9, 0.4, 0.2])]
    values, groups = advantages([r.reward for r in alive], 4)
    for one, value in zip(alive, values, strict=True):
        one.advantage = value
    assert made.updater.update(alive, groups, 1).updates == 1
    before = {name: weight.detach().clone() for name, weight in made.policy.trainable().items()}
    dead = [rollout(index, reward) for index, reward in enumerate(rewards)]
    update = made.updater.update(dead, advantages([r.reward for r in dead], 4)[1], 2)
    assert (update.updates, update.grad_norm) == (0, 0.0)
    assert all(torch.equal(before[name], weight) for name, weight in made.policy.trainable().items())


def test_a_better_rollout_becomes_more_likely(tmp_path: Path) -> None:
    policy = tiny_policy()
    made = trainer(settings(), tmp_path, policy)
    rollouts = [rollout(index, reward) for index, reward in enumerate([0.0, 1.0, 0.0, 0.0])]
    values, groups = advantages([r.reward for r in rollouts], 4)
    for one, value in zip(rollouts, values, strict=True):
        one.advantage = value

    def likelihood() -> torch.Tensor:
        with torch.no_grad():
            return policy.logprobs(made.updater.batch(rollouts), 1.0, 64)[0].sum(-1)

    before = likelihood()
    made.updater.update(rollouts, groups, 1)
    change = likelihood() - before
    assert change.argmax() == 1
    assert change[1] > 0


def test_with_a_reference_the_kl_is_zero_at_first_and_positive_after(tmp_path: Path) -> None:
    made = trainer(settings(train={"beta": 0.1, "num_iterations": 2}), tmp_path)
    rollouts = [rollout(index, reward) for index, reward in enumerate([0.1, 0.9, 0.4, 0.2])]
    values, groups = advantages([r.reward for r in rollouts], 4)
    for one, value in zip(rollouts, values, strict=True):
        one.advantage = value
    first = made.updater.update(rollouts, groups, 1).stats.means()
    again = made.updater.update(rollouts, groups, 2).stats.means()
    assert 0 < first["kl"] < again["kl"]


def collecting(
    config: Config,
    folder: Path,
    policy: Script,
    answer: Callable[[str], Painting],
    value: Callable[[Candidate], float | None],
) -> Trainer:
    gate = Gate(RenderSettings().methods)
    journal = Journal(folder, COLUMNS)
    painter = Painter(answer)
    collector = Collector(config, policy, painter, gate, mix_of(value, gate), journal.rollout)
    return Trainer(config, tiny_policy(), collector, POOL, journal)


SKETCHES = [GOOD % index for index in range(4)]


def test_a_machines_fault_is_none_and_a_sketchs_fault_is_zero(tmp_path: Path) -> None:
    def answer(source: str) -> Painting:
        if source == SKETCHES[1]:
            return Painting(Outcome.UNSCORED, "browser_died", "the browser ended")
        if source == SKETCHES[2]:
            return Painting(Outcome.REJECTED, "blank", "no paint")
        return painted()

    made = collecting(settings(), tmp_path, Script([*SKETCHES[:3], "no code at all"]), answer, lambda candidate: 0.7)
    metrics, _ = made.one_step(1)
    rows = read_rows(tmp_path / "rollouts.jsonl")
    assert [row["reward"] for row in rows] == [0.7, None, 0.0, 0.0]
    assert [row["reason"] for row in rows] == ["", "browser_died", "blank", "no_sketch"]
    assert rows[1]["advantage"] == 0.0
    assert (metrics["rollouts/scored"], metrics["rollouts/rejected"], metrics["rollouts/unscored"]) == (1, 2, 1)
    assert metrics["reward"] == pytest.approx(0.7 / 3)


def test_a_scorer_that_does_not_answer_is_none_never_zero(tmp_path: Path) -> None:
    made = collecting(
        settings(), tmp_path, Script(SKETCHES), lambda source: painted(),
        lambda candidate: None if candidate.source == SKETCHES[0] else 0.5,
    )  # fmt: skip
    made.one_step(1)
    rows = read_rows(tmp_path / "rollouts.jsonl")
    assert [row["reward"] for row in rows] == [None, 0.5, 0.5, 0.5]
    assert rows[0]["terms_info"]["judge"]["cause"] == "the scorer did not answer"


def test_a_bug_in_a_scorer_is_raised_not_scored(tmp_path: Path) -> None:
    def broken(candidate: Candidate) -> float:
        raise ZeroDivisionError("a fault of the scorer")

    made = collecting(settings(), tmp_path, Script(SKETCHES), lambda source: painted(), broken)
    with pytest.raises(ZeroDivisionError):
        made.one_step(1)


def test_painting_begins_while_others_are_still_sampled(tmp_path: Path) -> None:
    order: list[str] = []

    def answer(source: str) -> Painting:
        order.append(f"painting {source[-6]}")
        return painted()

    policy = Script(SKETCHES, between=lambda row: order.append(f"sampled {row}"))
    collecting(settings(), tmp_path, policy, answer, lambda candidate: 0.5).one_step(1)
    assert order.index("sampled 0") < order.index("sampled 3")
    assert len([entry for entry in order[: order.index("sampled 2")] if entry.startswith("painting")]) >= 2


def test_a_wholly_unscored_step_is_sampled_again_and_then_the_run_saves_and_stops(tmp_path: Path) -> None:
    policy = Script(SKETCHES)
    lost = Painting(Outcome.UNSCORED, "driver_died", "chromedriver ended")
    made = collecting(
        settings(run={"max_unscored_steps": 3}), tmp_path, policy, lambda source: lost, lambda candidate: 1.0
    )
    with pytest.raises(Unscored, match=r"step 1: no rollout could be scored, 3 times in a row .*driver_died"):
        made.run()
    assert policy.samplings == 3
    assert checkpoint.latest(tmp_path / "checkpoints").name == "step_0000"
    assert read_rows(tmp_path / "rollouts.jsonl") == []


def test_a_step_that_is_sampled_again_counts_its_attempts(tmp_path: Path) -> None:
    answers = iter([Painting(Outcome.UNSCORED, "driver_died", "")] * 4)
    made = collecting(
        settings(), tmp_path, Script(SKETCHES), lambda source: next(answers, painted()), lambda candidate: 0.5
    )
    metrics, _ = made.one_step(1)
    assert (metrics["attempts"], metrics["rollouts/scored"]) == (2, 4)


def test_a_stop_is_obeyed_between_steps_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    made = collecting(
        settings(checkpoint={"every": 10}), tmp_path, Script(SKETCHES), lambda s: painted(), lambda c: 0.5
    )
    asked = []
    made.should_stop = lambda: bool(asked)
    with pytest.raises(Stopped):
        made.run(lambda metrics, sheet: asked.append(1))
    assert checkpoint.latest(tmp_path / "checkpoints").name == "step_0001"


@pytest.mark.parametrize("optimizer", ["adamw", "adamw8bit"])
@pytest.mark.parametrize("lora", [True, False])
def test_a_loaded_checkpoint_goes_on_bit_for_bit(optimizer: str, lora: bool, tmp_path: Path) -> None:
    config = settings(train={"optimizer": optimizer})
    if not lora:
        config = changed(config, lora={"enabled": False})
    rollouts = [rollout(index, reward) for index, reward in enumerate([0.1, 0.9, 0.4, 0.2])]
    values, groups = advantages([r.reward for r in rollouts], 4)
    for one, value in zip(rollouts, values, strict=True):
        one.advantage = value
    whole = trainer(config, tmp_path / "whole", tiny_policy(lora))
    whole.updater.update(rollouts, groups, 1)
    whole.step = 1
    whole.save()
    saved = checkpoint.latest(whole.checkpoints)
    for step in (2, 3):
        whole.updater.update(rollouts, groups, step)

    resumed = trainer(config, tmp_path / "whole", tiny_policy(lora))
    resumed.resume()
    assert resumed.step == 1
    for step in (2, 3):
        resumed.updater.update(rollouts, groups, step)
    for name, weight in whole.policy.trainable().items():
        assert torch.equal(weight, resumed.policy.trainable()[name]), name
    for mine, theirs in zip(
        whole.updater.optimizer.state.values(), resumed.updater.optimizer.state.values(), strict=True
    ):
        for key, value in mine.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == theirs[key].dtype
                assert torch.equal(value, theirs[key])
    assert saved is not None


def test_an_adapter_is_loadable_by_peft_alone(tmp_path: Path) -> None:
    from parts import byte_tokenizer, tiny_model
    from peft import PeftModel

    made = trainer(settings(), tmp_path)
    for weight in made.policy.trainable().values():
        weight.data.normal_()
    made.save()
    other = PeftModel.from_pretrained(tiny_model(byte_tokenizer()), checkpoint.latest(made.checkpoints) / "adapter")
    mine = dict(made.policy.model.named_parameters())
    for name, weight in other.named_parameters():
        assert torch.equal(weight, mine[name]), name


def test_a_half_written_checkpoint_is_ignored_and_removed(tmp_path: Path) -> None:
    made = trainer(settings(), tmp_path)
    made.save()
    (made.checkpoints / ".part_0007").mkdir()
    (made.checkpoints / ".part_0007" / "state.json").write_text("{")
    assert checkpoint.latest(made.checkpoints).name == "step_0000"
    made.resume()
    assert sorted(path.name for path in made.checkpoints.iterdir()) == ["step_0000"]


def test_a_checkpoint_of_another_policy_is_refused_by_name(tmp_path: Path) -> None:
    made = trainer(settings(), tmp_path)
    made.save()
    with pytest.raises(UserError, match="other base weights"):
        trainer(settings(), tmp_path, tiny_policy(seed=1)).resume()
    (checkpoint.latest(made.checkpoints) / "optimizer.pt").write_bytes(b"half")
    with pytest.raises(UserError, match="not a whole checkpoint"):
        trainer(settings(), tmp_path).resume()


def test_a_full_disk_is_one_line_and_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(settings(), tmp_path)
    made.save()
    made.step = 1
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="the disk is full; nothing that was there is lost"):
        made.save()
    assert sorted(path.name for path in made.checkpoints.iterdir()) == ["step_0000"]


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    made = trainer(settings(checkpoint={"keep": 2}), tmp_path)
    for step in (0, 1, 9, 10, 11):
        made.step = step
        made.save()
    assert sorted(path.name for path in made.checkpoints.iterdir()) == ["step_0010", "step_0011"]


def test_the_score_record_keeps_details(tmp_path: Path) -> None:
    one = rollout(0, 0.5)
    one.verdict = Verdict(0.5, "scored", terms={"judge": Score(0.5, {"against": ["love_1"]})})
    assert one.record()["terms_info"] == {"judge": {"against": ["love_1"]}}


class Strong:
    """A judge of fixed strengths: what is drawn decides the score, what is painted does not."""

    name, stand_in = "judge", False

    def __init__(self) -> None:
        self.strength = {reference.name: index / 6 for index, reference in enumerate(POOL.references)}

    def score(self, candidate: Candidate, references: list[Reference]) -> Score:
        won = {reference.name: 1 - self.strength[reference.name] for reference in references}
        return Score(sum(won.values()) / len(won), {"won": won, "bias": 0.25, "split": 1})


def test_the_luck_of_the_draw_is_logged_and_taken_out(tmp_path: Path) -> None:
    config = settings(run={"steps": 12}, pool={"references": 2})
    journal = Journal(tmp_path, COLUMNS)
    gate = Gate(config.render.methods)
    texts = [f"```js\n{GOOD % n}\n```" for n in range(4)] * 12
    mix = Mix({"gate": 0.2, "judge": 0.8}, gate, [Strong()])
    collector = Collector(config, Script(texts), Painter(lambda source: painted()), gate, mix, journal.rollout)
    made = Trainer(config, tiny_policy(), collector, POOL, journal)
    made.run()
    rows = read_rows(tmp_path / "metrics.jsonl")
    weight = config.reward.weights.judge
    for row in rows:
        assert row["reward_adjusted"] == pytest.approx(row["reward"] - weight * row["draw/effect"])
        assert (row["judge/bias"], row["judge/split"]) == (0.25, 4)
    easy = max(rows, key=lambda row: row["reward"])
    hard = min(rows, key=lambda row: row["reward"])
    assert easy["draw/difficulty"] < 0 < hard["draw/difficulty"]
    assert easy["draw/effect"] > 0 > hard["draw/effect"]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")

    resumed = trainer(config, tmp_path)
    resumed.resume()
    assert (resumed.strengths.fit().mean == made.strengths.fit().mean).all()
