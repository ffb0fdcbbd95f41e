"""Several subjects: which group of which step has which, and groups that do not stand in each other's way."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from parts import GOOD, Painter, Script, changed, mix_of, painted, tiny_policy

from grpo.config import Config
from grpo.folder import read_rows
from grpo.journal import Journal
from grpo.metrics import COLUMNS
from grpo.rollout import Collector, subject_of
from grpo.trainer import Trainer
from reward.base import Candidate
from reward.gate import Gate
from reward.pool import Pool

NAMES = ("a rose", "a poppy", "a dahlia", "a lily", "an iris")


def config_of(order: str, groups: int, seed: int = 0) -> Config:
    return changed(
        Config(), subject={"name": NAMES, "order": order}, sample={"prompts_per_step": groups}, run={"seed": seed}
    )


def drawn(config: Config, step: int) -> list[str]:
    return [subject_of(config, step, group) for group in range(config.sample.prompts_per_step)]


def test_in_turn_every_subject_comes_equally_often() -> None:
    config = config_of("in_turn", 2)
    named = [name for step in range(1, 6) for name in drawn(config, step)]
    assert Counter(named) == dict.fromkeys(NAMES, 2)
    assert all(first != second for first, second in pairwise(named))


def test_drawn_is_a_function_of_seed_and_step_without_repeats_in_a_step() -> None:
    config = config_of("drawn", 3)
    steps = {step: drawn(config, step) for step in range(1, 401)}
    assert all(len(set(names)) == 3 for names in steps.values())
    assert {step: drawn(config, step) for step in (400, 7, 1)} == {step: steps[step] for step in (400, 7, 1)}
    counts = Counter(name for names in steps.values() for name in names)
    assert all(180 < counts[name] < 300 for name in NAMES)  # 240 each, standard deviation 10
    assert len({tuple(names) for names in steps.values()}) > 50  # of 60
    assert [drawn(config_of("drawn", 3, seed=1), step) for step in range(1, 9)] != [steps[step] for step in range(1, 9)]


def test_more_groups_than_subjects_are_filled_up_evenly() -> None:
    counts = Counter(drawn(config_of("drawn", 12), 3))
    assert set(counts) == set(NAMES)
    assert set(counts.values()) == {2, 3}


@pytest.mark.parametrize("order", ["in_turn", "drawn"])
def test_each_group_of_a_step_is_judged_against_itself_however_many_are_scored(order: str, tmp_path: Path) -> None:
    config = config_of(order, 3)
    config = changed(
        config,
        sample={"group_size": 3, "max_completion_length": 16},
        train={"learning_rate": 0.01, "warmup_steps": 0, "micro_batch_size": 2},
    )
    # Group 0 is whole, group 1 lacks one, group 2 has one left: nothing to compare it with.
    values = [0.1, 0.4, 0.7, None, 0.2, 0.8, None, 0.5, None]
    sketches = [GOOD % index for index in range(9)]
    told = dict(zip(sketches, values, strict=True))

    def value(candidate: Candidate) -> float | None:
        return told[candidate.source or ""]

    gate, journal = Gate(config.render.methods), Journal(tmp_path, COLUMNS)
    collector = Collector(
        config, Script(sketches), Painter(lambda source: painted()), gate, mix_of(value, gate), journal.rollout
    )
    trainer = Trainer(config, tiny_policy(), collector, Pool((), "no pool"), journal)
    metrics, _ = trainer.one_step(1)
    rows = read_rows(tmp_path / "rollouts.jsonl")
    assert [row["reward"] for row in rows] == values
    assert [row["advantage"] for row in rows] == pytest.approx([-0.3, 0.0, 0.3, 0.0, -0.3, 0.3, 0.0, 0.0, 0.0])
    assert [row["subject"] for row in rows[::3]] == drawn(config, 1)
    assert metrics["frac_unscored_groups"] == pytest.approx(1 / 3)
    assert (metrics["rollouts/scored"], metrics["rollouts/unscored"], metrics["updates"]) == (6, 3, 1)
