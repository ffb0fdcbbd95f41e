"""Samples with fixed seeds: the same every time, no trace in the training, and what is said of them."""

import io
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from parts import changed, painted, png, tiny_policy
from PIL import Image
from rich.console import Console

from grpo.config import Config
from grpo.folder import read_rows
from grpo.journal import Journal
from grpo.metrics import COLUMNS
from grpo.policy import Policy
from grpo.probe import Probe, Sampler, change, distance, is_valid, reasons
from grpo.rollout import Collector, Rollout
from grpo.trainer import Trainer
from render.painting import Outcome, Painting
from reward.base import Candidate, Reference, Verdict
from reward.control import Control
from reward.gate import Gate
from reward.pool import Pool

NO_POOL = Pool((), "no pool")


class OfText(Control):
    """A reward of the text alone that a policy of noise can have, too."""

    def judge(self, candidate: Candidate, references: Sequence[Reference] = ()) -> Verdict:
        return Verdict(sum(candidate.reply.encode()) % 97 / 97, "scored")


def config_of(samples: int, **tables: dict) -> Config:
    base = changed(Config(), run={"steps": 2}, sample={"group_size": 4, "max_completion_length": 12})
    base = changed(base, train={"learning_rate": 0.01, "warmup_steps": 0}, probe={"samples": samples})
    return changed(base, **tables)


def parts_of(config: Config, policy: Policy) -> tuple:
    gate = Gate(config.render.methods)
    return gate, OfText(gate, 0), Sampler(config, policy, None, gate, OfText(gate, 0), NO_POOL, config.probe.samples)


def trained(folder: Path, samples: int) -> tuple[dict[str, torch.Tensor], list[list[int]], str]:
    config, policy = config_of(samples), tiny_policy()
    gate, mix, sampler = parts_of(config, policy)
    probe = Probe(folder / "probe", sampler, Console(file=io.StringIO()))
    journal = Journal(folder, COLUMNS)
    trainer = Trainer(config, policy, Collector(config, policy, None, gate, mix, journal.rollout), NO_POOL, journal)
    probe.before(trainer.step)
    trainer.run()
    line = probe.after(trainer.step)
    tokens = [row["completion_ids"] for row in read_rows(folder / "rollouts.jsonl")]
    return {name: weight.detach().clone() for name, weight in policy.trainable().items()}, tokens, line


def test_a_run_with_a_probe_is_the_same_run_to_the_bit(tmp_path: Path) -> None:
    plain, tokens, silent = trained(tmp_path / "plain", 0)
    probed, same_tokens, line = trained(tmp_path / "probed", 3)
    start = tiny_policy().trainable()
    assert any(not torch.equal(start[name], weight) for name, weight in plain.items())
    assert tokens == same_tokens
    assert all(torch.equal(weight, probed[name]) for name, weight in plain.items())
    assert silent == ""
    assert not (tmp_path / "plain" / "probe").exists()
    folder = tmp_path / "probed" / "probe"
    assert line.startswith("probe of 3 samples, before -> after: reward 0.")
    assert line.endswith(str(folder / "before_after.png"))
    assert (folder / "before_after.png").read_bytes().startswith(b"\x89PNG")
    drawn = [
        [row["completion_ids"] for row in read_rows(folder / step / "rollouts.jsonl")]
        for step in ("step_0000", "step_0002")
    ]
    assert [len(rows) for rows in drawn] == [3, 3]
    assert not any(ids in tokens for ids in drawn[0])  # seeds of its own


def test_what_lies_there_whole_is_not_painted_again(tmp_path: Path) -> None:
    sampler = parts_of(config_of(2), tiny_policy())[2]
    screen = Console(file=io.StringIO())
    Probe(tmp_path, sampler, screen).before(0)
    first = [row["completion_ids"] for row in read_rows(tmp_path / "step_0000" / "rollouts.jsonl")]
    sketchy = SimpleNamespace(total=2, paint=lambda *_: pytest.fail("painted again"))
    Probe(tmp_path, sketchy, screen).before(0)
    Probe(tmp_path / "elsewhere", sketchy, screen).before(7)  # the beginning is over
    assert Probe(tmp_path / "elsewhere", sketchy, screen).after(7) == ""
    (tmp_path / "step_0000" / "metrics.jsonl").unlink()  # a process that was killed while it painted
    Probe(tmp_path, sampler, screen).before(0)
    assert [row["completion_ids"] for row in read_rows(tmp_path / "step_0000" / "rollouts.jsonl")] == first


def test_every_subject_has_its_samples_whatever_the_order_of_training(tmp_path: Path) -> None:
    subject = {"name": ("a rose", "a poppy", "a dahlia"), "order": "drawn"}
    sampler = parts_of(config_of(2, subject=subject), tiny_policy())[2]
    row = sampler.paint("base", tmp_path, lambda done, of: None)
    assert row["samples"] == sampler.total == 6
    named = [record["subject"] for record in read_rows(tmp_path / "rollouts.jsonl")]
    assert named == ["a rose", "a rose", "a poppy", "a poppy", "a dahlia", "a dahlia"]


def test_distance_is_the_mean_colour_difference_of_all_pairs() -> None:
    def flat(shade: int) -> bytes:
        buffer = io.BytesIO()
        Image.new("RGB", (70, 30), (shade, shade, shade)).save(buffer, "PNG")
        return buffer.getvalue()

    assert distance([flat(0)]) is None
    assert distance([flat(90), flat(90)]) == 0
    assert distance([flat(0), flat(255)]) == pytest.approx(100, abs=0.1)
    # Three pairs, one of them equal.
    assert distance([flat(0), flat(255), flat(255)]) == pytest.approx(200 / 3, abs=0.1)
    assert 0 < distance([png(40), png(60)]) < distance([png(40), png(200)])


def test_valid_is_what_painted_and_every_other_fate_is_named() -> None:
    def one(painting: Painting | None, verdict: Verdict) -> Rollout:
        return Rollout(0, 0, 0, "a rose", (1,), (2,), True, "", "code", painting, verdict)

    found = [
        one(painted(), Verdict(0.5, "scored")),
        one(painted(), Verdict(None, "unscored", "judge", "no token")),
        one(Painting(Outcome.REJECTED, "blank"), Verdict(0.0, "rejected", "blank")),
        one(Painting(Outcome.REJECTED, "blank"), Verdict(0.0, "rejected", "blank")),
        one(Painting(Outcome.UNSCORED, "browser_died"), Verdict(None, "unscored", "browser_died")),
        one(None, Verdict(0.0, "rejected", "no_sketch")),
    ]
    assert [is_valid(rollout) for rollout in found] == [True, True, False, False, False, False]
    assert reasons(found) == ("2x rejected blank, 1x unscored judge, 1x unscored browser_died, 1x rejected no_sketch")


def test_the_line_of_a_change_leaves_open_what_is_not_known() -> None:
    row = {"reward": None, "valid": 3, "rollouts/distinct": 3, "distance": None, "completions/mean_length": 20.4}
    assert change([row, {**row, "reward": 0.25}]) == (
        "reward - -> 0.250, valid 3 -> 3, distinct sketches 3 -> 3, distance between paintings - -> -, tokens 20 -> 20"
    )
