"""Configs are read strictly: each mistake is one line that names file, table, key and what would be right."""

from dataclasses import fields
from pathlib import Path

import pytest

from grpo import config as configs
from render.errors import ConfigError
from render.reading import documentation, flatten
from reward.config import OF_TRAINING, ScoringConfig
from reward.config import load as load_scoring

CONFIGS = sorted(Path(__file__).parents[2].glob("configs/*.toml"))


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[trian]\nlearning_rate = 1e-4", ["[trian] is not a setting", "did you mean train?"]),
        ("[train]\nlerning_rate = 1e-4", ["[train] lerning_rate is not a setting", "did you mean learning_rate?"]),
        ("[train]\nlearning_rate = 'fast'", ["[train] learning_rate must be a number", '"fast"']),
        ("[train]\nlearning_rate = 0", ["[train] learning_rate must be above 0"]),
        (
            "[train]\nloss_type = 'dap'",
            ["[train] loss_type", '"dapo", "grpo", "bnpo", "dr_grpo"', "did you mean dapo?"],
        ),
        ("[run]\nsteps = 1.5", ["[run] steps must be a whole number, not 1.5"]),
        ("[run]\nsteps = true", ["[run] steps must be a whole number, not True"]),
        ("[lora]\nenabled = 1", ["[lora] enabled must be true or false, not 1"]),
        ("[sample]\ngroup_size = 1", ["[sample] group_size must be at least 2, not 1"]),
        ("[sample]\nrows_at_once = 9", ["[sample] rows_at_once must be at most group_size x prompts_per_step (8)"]),
        ("[subject]\nname = []", ["[subject] name is empty"]),
        ("[subject]\nname = ['a', 1]", ["[subject] name must be a list of strings or a string"]),
        ("[subject]\nname = ''", ["[subject] name is empty"]),
        ("[subject]\ncriteria = ' '", ["[subject] criteria is empty"]),
        ("[reward.weights]\njudge = 0.5\n", ["[reward.weights] must sum to 1"]),
        ("[reward.weigths]\njudge = 0.5\n", ["[reward] weigths is not a setting", "did you mean weights?"]),
        ("[reward]\nweights = 3", ["[reward.weights] is a table, not 3"]),
        ("[train]\nbeta = 0.1\n[lora]\nenabled = false", ["[train] beta above 0 needs [lora] enabled = true"]),
        ("[policy]\ndevice = 'cpu'\ndtype = 'bfloat16'", ['[policy] dtype "bfloat16" needs a GPU']),
        ("[run\nsteps = 3", ["not valid TOML"]),
    ],
)
def test_a_mistake_is_one_line_that_names_place_and_remedy(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        configs.load(path)
    message = str(caught.value)
    assert "\n" not in message
    for part in [str(path), *parts]:
        assert part in message


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "")
    with pytest.raises(ConfigError, match=r"there is no such config file; there are .*mine\.toml"):
        configs.load(tmp_path / "yours.toml")


def test_every_shipped_config_is_valid_and_survives_a_round_trip(tmp_path: Path) -> None:
    assert {path.stem for path in CONFIGS} >= {"laptop", "judge_led", "hps_led", "hps_only"}
    for path in CONFIGS:
        config = configs.load(path)
        assert configs.load(write(tmp_path, configs.dump(config))) == config


@pytest.mark.parametrize(
    ("name", "steps", "hps", "judge"),
    [("judge_led", 110, 0.3, 0.6), ("hps_led", 110, 0.6, 0.3), ("hps_only", 60, 0.9, 0)],
)
def test_the_recipes_hold_the_published_numbers(name: str, steps: int, hps: float, judge: float) -> None:
    config = configs.load(Path(__file__).parents[2] / "configs" / f"{name}.toml")
    assert config.run.steps == steps
    weights = config.reward.weights
    assert (weights.gate, weights.length, weights.preference, weights.judge) == (0.05, 0.05, hps, judge)
    assert (config.lora.rank, config.lora.alpha, config.lora.dropout) == (16, 32, 0)
    assert (config.sample.group_size, config.sample.max_completion_length) == (8, 8192)
    assert (config.sample.top_p, config.sample.top_k) == (0.95, 20)
    assert (config.train.learning_rate, config.train.warmup_steps, config.train.scale_rewards) == (5e-5, 5, "none")
    assert config.policy.model == "Qwen/Qwen3.5-35B-A3B"
    assert config.pool.references == 4
    assert len(config.pool.revision) == 40


def test_overrides_win_over_the_file_and_are_checked_like_it(tmp_path: Path) -> None:
    path = write(tmp_path, "[run]\nsteps = 5\n")
    config = configs.load(path, ["run.steps=7", "policy.model=some/model", "subject.name=['a','b']", "lora.rank=8"])
    assert (config.run.steps, config.policy.model, config.subject.names) == (7, "some/model", ("a", "b"))
    with pytest.raises(ConfigError, match=r"\[run\] stepps is not a setting; did you mean steps\?"):
        configs.load(path, ["run.stepps=7"])
    with pytest.raises(ConfigError, match=r"table\.key=value"):
        configs.load(path, ["steps=7"])


def test_scoring_by_itself_reads_the_same_tables() -> None:
    """`python -m reward` reads a run's config: every table is either its own or known to be of training."""
    names = {entry.name for entry in fields(configs.Config)}
    own = {entry.name for entry in fields(ScoringConfig)}
    assert own | set(OF_TRAINING) == names
    assert not own & set(OF_TRAINING)
    for path in CONFIGS:
        config = configs.load(path)
        scoring = load_scoring(path)
        assert all(getattr(scoring, name) == getattr(config, name) for name in own)
    with pytest.raises(ConfigError, match=r"\[rewrad\] is not a setting; did you mean reward\?"):
        load_scoring(CONFIGS[0], ["rewrad.judge=vlm"])


def test_options_without_effect_are_reported(tmp_path: Path) -> None:
    quiet = configs.load(write(tmp_path, ""))
    assert configs.notes(quiet) == []
    loud = configs.load(write(tmp_path, "[train]\nclip_high = 0.3\nkl_estimator = 'k1'\n"))
    assert len(configs.notes(loud)) == 2
    biased = configs.load(write(tmp_path, "[sample]\ntop_k = 20\n[train]\nnum_iterations = 2\n"))
    assert any("shape sampling only" in note for note in configs.notes(biased))


def test_every_setting_is_documented_in_a_line() -> None:
    lines = documentation(configs.Config)
    assert set(lines) == set(flatten(configs.Config()))
    assert all(0 < len(line) < 120 and "\n" not in line for line in lines.values())
