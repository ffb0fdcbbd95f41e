"""The report on a run made by hand and on a table as other trainers publish it, against sums done by hand; and on runs
that lack something."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from grpo.report import __main__ as report
from grpo.report import diversity as diversity
from grpo.report.diversity import Looks, feature_distances, look
from grpo.report.draw import draws
from grpo.report.plot import Panel, Sheet, round_ticks, spread, step_ticks, unbroken
from grpo.report.source import load
from grpo.report.tables import ABSENT
from render.errors import UserError
from reward.pool import Pool
from reward.strength import Strengths

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "report"
BLACK_AND_WHITE = {(1, 0): 0, (1, 1): 255, (3, 0): 90, (3, 1): 90, (6, 0): 255, (6, 1): 0}


def made(folder: Path) -> Path:
    """The run made by hand, with paintings: black beside white in steps 1 and 6, the same grey twice in step 3."""
    shutil.copytree(FIXTURES / "run", folder)
    (folder / "paintings").mkdir()
    for (step, index), level in BLACK_AND_WHITE.items():
        Image.new("RGB", (32, 32), (level,) * 3).save(folder / "paintings" / f"step_{step:04d}_{index:02d}.png")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made(tmp_path / "run")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command prints of it for machines."""
    folder = made(tmp_path_factory.mktemp("seen") / "run")
    line = [sys.executable, "-m", "grpo.report", str(folder), "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (folder / "report").iterdir()} == {"report.md", "overview.png", "features.jsonl"}
    return dict(json.loads(done.stdout)["runs"][0])


def numbers(path: Path) -> dict[str, Any]:
    """The same without the command."""
    source = load(path)
    looks = look(source, path / "cache.jsonl") if path.is_dir() else None
    return report.analyse(source, draws(source), feature_distances([looks])[0], looks.colours if looks else {})


# --- right numbers ------------------------------------------------------------------------------------------------
#
# step       1        2             3        4           5          6
# rewards    .2 .4    0 (rejected), .2   .5 .5    none (twice)  .6, none   .2 .8
# mean       .3       .1            .5       none        .6         .5
# thirds are steps 1-2, 3-4, 5-6


def test_a_run_by_thirds(seen: dict[str, Any]) -> None:
    part = seen["by_third"]
    assert part["reward"] == pytest.approx([0.2, 0.5, 0.55])  # (.3 + .1) / 2, .5 alone, (.6 + .5) / 2
    assert part["best"] == pytest.approx([0.3, 0.5, 0.7])  # (.4 + .2) / 2, .5, (.6 + .8) / 2
    assert part["median"] == pytest.approx([0.2, 0.5, 0.55])  # of two the mean, of one itself
    assert part["reward_adjusted"] == pytest.approx([0.2, 0.45, 0.55])  # (.25 + .15) / 2, .45, (.65 + .45) / 2
    assert part["terms"]["judge"] == pytest.approx([0.2, 0.5, 0.7])  # (.1 + .3) / 2, .5, (.6 + .8) / 2
    assert part["entropy"] == pytest.approx([0.9, 0.6, 0.3])
    assert part["tokens"] == pytest.approx([15, 35, 55])
    assert part["step_time"] == pytest.approx([5, 5, 9])
    assert part["time"]["sample"] == pytest.approx([1, 2, 3])
    # Step 1 twice the same completion: 1/2; step 2: 2/2. Step 3: 1/2, step 4: 2/2. Steps 5 and 6: 2/2.
    assert part["distinct"] == pytest.approx([0.75, 0.75, 1.0])


def test_bad_ones_are_counted_among_the_scored(seen: dict[str, Any]) -> None:
    # First third .2 .4 0 .2: three of four below .3, one of them rejected; middle .5 .5: none; last .6 .2 .8: one.
    below = seen["by_third"]["below"]
    assert below["count"] == [3, 0, 1]
    assert below["scored"] == [4, 2, 3]
    assert below["rejected"] == [1, 0, 0]
    assert below["share"] == pytest.approx([0.75, 0.0, 1 / 3])


def test_trend(seen: dict[str, Any]) -> None:
    # Steps 1 2 3 5 6 (4 has no reward), mean 3.4; rewards .3 .1 .5 .6 .5, mean .4.
    # Sxx = 5.76 + 1.96 + .16 + 2.56 + 6.76 = 17.2; Sxy = .24 + .42 - .04 + .32 + .26 = 1.2; Syy = .16.
    # slope = 1.2 / 17.2 = .0697674; left = .16 - 1.44 / 17.2 = .0762791; error = sqrt(.0762791 / 3 / 17.2) = .0384483
    # t = 1.814578. Adjusted .25 .15 .45 .65 .45, mean .39: Sxy = .336 + .336 - .024 + .416 + .156 = 1.22,
    # slope = 1.22 / 17.2 = .0709302.
    trend = seen["trend"]
    assert trend["reward"]["slope"] == pytest.approx(0.0697674, abs=1e-7)
    assert trend["reward"]["standard_error"] == pytest.approx(0.0384483, abs=1e-6)
    assert trend["reward"]["t"] == pytest.approx(1.814578, abs=1e-5)
    assert trend["reward"]["n"] == 5
    assert trend["reward_adjusted"]["slope"] == pytest.approx(0.0709302, abs=1e-7)


def test_where_the_rise_came_from(seen: dict[str, Any]) -> None:
    # First .2 .4 0 .2: p1 = 3/4, b1 = .4/3, g1 = .4; last .6 .2 .8: p2 = 1/3, b2 = .2, g2 = .7.
    # rarer = (3/4 - 1/3) (.55 - 1/6) = .1597222; p' = 13/24; good better = 11/24 x .3 = .1375;
    # bad better = 13/24 x (.2 - .4/3) = .0361111; together .3333333 = 1.6/3 - .8/4.
    rise = seen["rise"]
    assert rise["rarer"] == pytest.approx(0.1597222, abs=1e-6)
    assert rise["good_better"] == pytest.approx(0.1375)
    assert rise["bad_better"] == pytest.approx(0.0361111, abs=1e-6)
    assert rise["rise"] == pytest.approx(1 / 3)


def test_correlations(seen: dict[str, Any]) -> None:
    # Painted and scored: rewards .2 .4 | .2 | .5 .5 | .6 | .2 .8, coverage .1 .3 | .1 | .2 .2 | .2 | .1 .4.
    # Means .425 and .2; sums of squares .335 and .08, of products .14: r = .14 / sqrt(.0268) = .855186.
    # Inside groups, from each step's own mean: squares .2 and .065, products .11: .11 / sqrt(.013) = .964764.
    # Tokens are 100 - 100 x coverage: the same with the other sign. Shapes are 5 throughout: no correlation.
    related = seen["correlations"]
    assert related["rollouts"] == 8
    assert related["coverage"]["all"] == pytest.approx(0.855186, abs=1e-6)
    assert related["coverage"]["inside_groups"] == pytest.approx(0.964764, abs=1e-6)
    assert related["tokens"]["all"] == pytest.approx(-0.855186, abs=1e-6)
    assert related["tokens"]["inside_groups"] == pytest.approx(-0.964764, abs=1e-6)
    assert related["shapes"] == {"all": None, "inside_groups": None}


def test_dead_groups_and_reasons(seen: dict[str, Any]) -> None:
    # Step 3 has two equal rewards; step 4 has none and step 5 one: fewer than two.
    assert seen["groups"] == {"all": [2, 2, 2], "zero_spread": [0, 1, 0], "unscored": [0, 1, 1], "shares": None}
    assert seen["reasons"] == {
        "rejected": {"throws": [1, 0, 0]},
        "unscored": {"judge": [0, 2, 1]},
        "unscored_causes": {"judge: timeout": 3},
    }
    assert seen["by_third"]["outcomes"] == {"scored": [3, 2, 3], "rejected": [1, 0, 0], "unscored": [0, 2, 1]}
    assert seen["totals"]["sampled_again"] == 1


def test_the_draw_as_logged(seen: dict[str, Any]) -> None:
    # Effects .1 -.1 | .1 | -.1 .1. With rewards .3 .1 .5 .6 .5: squares .16 and .048, products .02:
    # r = .02 / sqrt(.00768) = .228218.
    draw = seen["draw"]
    assert draw["effect"] == pytest.approx([0, 0.1, 0])
    assert draw["difficulty"] == pytest.approx([0, 0.2, 0])
    assert (draw["easiest"], draw["hardest"]) == (0.1, -0.1)
    assert draw["correlation"] == pytest.approx(0.228218, abs=1e-6)


def test_what_the_judge_took(seen: dict[str, Any]) -> None:
    judge = seen["judge"]
    # Each of the six steps: 4 calls, 3 answers, 1 from the cache, 1 again, 1,000 tokens in, 10 out, cost .5.
    assert [judge[key] for key in ("calls", "answers", "cached", "retries")] == [24, 18, 6, 6]
    assert [judge[key] for key in ("tokens_in", "tokens_out", "cost")] == [6000, 60, 3.0]
    assert judge["faults"] == {"timeout": 2}


def test_colour_distance_in_groups(seen: dict[str, Any]) -> None:
    # Black beside white is 100 in CIE Lab, the same grey twice 0; one painting alone has no distance.
    assert seen["by_third"]["colour_distance"] == pytest.approx([100, 0, 100], abs=0.01)


def test_feature_distance() -> None:
    # The first statistic has the values 0 2 0 2 1 1 1 1: mean 1, deviation sqrt(4/8) = .707107; the second never varies
    # and is left out. Group (1, 0): 2 / .707107 = 2.828427; group (2, 0): two pairs at 1 and one at 2, all / .707107:
    # (1 + 1 + 2) / 3 / .707107 = 1.885618; of one painting: none.
    one = Looks({(1, 0): np.array([[0.0, 5], [2.0, 5]]), (2, 0): np.array([[0.0, 5], [2.0, 5], [1.0, 5]])}, {})
    two = Looks({(1, 0): np.array([[1.0, 5], [1.0, 5]]), (2, 0): np.array([[1.0, 5]])}, {})
    first, second, none = feature_distances([one, two, None])
    assert first == pytest.approx({(1, 0): 2.828427, (2, 0): 1.885618}, abs=1e-6)
    assert second == {(1, 0): 0.0}
    assert none == {}


def test_a_published_table() -> None:
    # Nine rows at steps 10 to 90: .30 .36 .33 | .42 .45 .48 | .57 .54 .60, mean .45.
    # In tens of steps: Sxx = 60, Sxy = .6 + .27 + .24 + .03 + 0 + .03 + .24 + .27 + .6 = 2.28, Syy = .0918:
    # slope .038 in ten steps; left .0918 - 2.28^2 / 60 = .00516; error sqrt(.00516 / 7 / 60) = .0035051; t = 10.8413
    seen = numbers(FIXTURES / "published.csv")
    part = seen["by_third"]
    assert seen["thirds"]["steps"] == [[10, 30], [40, 60], [70, 90]]
    assert part["reward"] == pytest.approx([0.33, 0.45, 0.57])
    assert part["terms"]["hpsv3_reward"] == pytest.approx([0.2, 0.5, 0.8])
    assert part["terms"]["judge_reward"] == pytest.approx([0.5, 0.5, 0.5])  # one cell is empty: no zero
    assert part["tokens"] == pytest.approx([3100, 3400, 3700])
    assert part["entropy"] == pytest.approx([1.0, 0.5, 0.5])
    assert seen["trend"]["reward"]["slope"] == pytest.approx(0.0038)
    assert seen["trend"]["reward"]["t"] == pytest.approx(10.8413, abs=1e-3)
    assert seen["groups"]["shares"][0] == pytest.approx([0, 0, 0.5])


# --- what a file cannot say -----------------------------------------------------------------------------------------


def test_a_table_says_what_it_does_not_hold() -> None:
    seen = numbers(FIXTURES / "published.csv")
    for key in ("rollouts", "rise", "correlations", "reasons", "draw", "judge"):
        assert seen[key] is None, key
    for key in ("best", "median", "below", "distinct", "feature_distance", "step_time", "coverage", "cost"):
        assert seen["by_third"][key] is None, key
    assert seen["by_third"]["outcomes"] == {"scored": None, "rejected": None, "unscored": None}
    cells = {row[0]: row[1:] for table in report.tables(seen) for row in table.rows}
    for label in ("best of each step", "share below 0.3", "rejected", "coverage", "feature distance", "seconds a step"):
        assert cells[label][0] == ABSENT, label
    assert cells["share of dead groups: unscored"][0] == ABSENT


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("step,reward\n1,0.5\n2,0.7\n", [1, 2]),
        ("epoch,reward\n0.1,0.5\n0.2,0.7\n", [1, 2]),
        ("Step,a run - train/reward,a run - train/reward__MIN\n4,0.5,0.1\n8,0.7,0.1\n", [4, 8]),
        ("train/global_step,_step,train/reward,eval/reward\n3,900,0.5,0.9\n6,901,0.7,0.9\n", [3, 6]),
        ("step,loss,reward\n1,0.1,\n1,,0.5\n2,0.1,0.7\n", [1, 2]),
        ("\ufeffstep,reward\r\n1,0.5\r\n2,0.7\r\n", [1, 2]),
    ],
)
def test_spellings_of_a_table(tmp_path: Path, text: str, steps: list[int]) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    source = load(tmp_path / "a.csv")
    assert source.steps == steps
    assert source.column("reward") == [0.5, 0.7]


def test_older_names_of_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,reward,rewards/taste,completion_length\n1,0.5,0.25,800\n")
    source = load(tmp_path / "a.csv")
    assert source.column("rewards/taste/mean") == [0.25]
    assert source.column("completions/mean_length") == [800]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no row"),
        ("step,loss\n1,0.5\n", "no column reward"),
        ("Step,a - train/reward,b - train/reward\n1,0.5,0.6\n", "several runs"),
        ("step,reward\n,0.5\n", "no row names its step"),
    ],
)
def test_a_table_that_cannot_be_read_ends_in_a_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UserError, match=words):
        load(tmp_path / "a.csv")


# --- runs that lack something ---------------------------------------------------------------------------------------


def _report(path: Path, out: Path) -> str:
    """The Markdown of one run; the picture must be there too."""
    assert report.main([str(path), "-o", str(out)]) == 0
    with Image.open(out / "overview.png") as picture:
        assert picture.size[0] == 1500
    return (out / "report.md").read_text()


def test_one_step(run: Path, tmp_path: Path) -> None:
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        lines = [line for line in (run / name).read_text().splitlines() if '"step": 1,' in line]
        (run / name).write_text("\n".join(lines) + "\n")
    text = _report(run, tmp_path / "out")
    assert "| the only step |" in text
    assert "| rise of the mean | - |" in text


def test_a_run_without_rollouts(run: Path, tmp_path: Path) -> None:
    (run / "rollouts.jsonl").unlink()
    assert f"| rollouts below 0.3 | {ABSENT} |" in _report(run, tmp_path / "out")


def test_a_step_of_which_nothing_was_scored_is_named(run: Path, tmp_path: Path) -> None:
    assert "1 steps without a reward (step 4)" in _report(run, tmp_path / "out")


def test_no_reward_at_all(run: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (run / "metrics.jsonl").write_text("".join(json.dumps({**row, "reward": None}) + "\n" for row in rows))
    assert "| mean reward | - | - | - |" in _report(run, tmp_path / "out")


def test_the_control_task_has_no_paintings_and_no_terms(run: Path) -> None:
    (run / "config.toml").write_text('[reward]\ntask = "fills"\npreference = "stand_in"\njudge = "stand_in"\n')
    records = [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]
    lines = [json.dumps({**record, "painting": None}) + "\n" for record in records]
    (run / "rollouts.jsonl").write_text("".join(lines))
    seen = numbers(run)
    assert seen["correlations"]["painted"] is False
    assert seen["correlations"]["rollouts"] == 9  # all scored ones, the rejected among them
    assert seen["correlations"]["coverage"] == {"all": None, "inside_groups": None}
    assert seen["correlations"]["tokens"]["all"] is not None
    assert seen["by_third"]["terms"] == {}
    assert seen["stand_ins"] == []
    assert seen["by_third"]["feature_distance"] is None


def test_a_run_that_goes_on_is_read_to_its_last_whole_step(run: Path) -> None:
    with (run / "rollouts.jsonl").open("a") as stream:
        record = json.loads((run / "rollouts.jsonl").read_text().splitlines()[0])
        stream.write(json.dumps({**record, "step": 7}) + "\n" + '{"step": 7, "index": 1, "rew')
    seen = numbers(run)
    assert (seen["steps"], seen["rollouts"]) == (6, 12)


def test_samples_of_a_probe_are_read_too(run: Path) -> None:
    """Their table does not name the step, and their config is the run's."""
    (run / "config.toml").write_text('[reward]\ntask = "paint"\njudge = "stand_in"\n')
    probe = run / "probe" / "step_0000"
    probe.mkdir(parents=True)
    row = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    for key in ("step", "draw/effect", "draw/difficulty"):
        del row[key]
    (probe / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    records = [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()[:2]]
    (probe / "rollouts.jsonl").write_text("".join(json.dumps({**record, "step": 0}) + "\n" for record in records))
    seen = numbers(probe)
    assert (seen["first_step"], seen["rollouts"], seen["stand_ins"], seen["notes"]) == (0, 2, ["judge"], [])


def test_stand_ins_are_called_so(run: Path, tmp_path: Path) -> None:
    (run / "config.toml").write_text('[reward]\ntask = "paint"\njudge = "stand_in"\n')
    assert "| term judge (stand-in) |" in _report(run, tmp_path / "out")


@pytest.mark.parametrize("what", ["folder", "config alone", "nothing"])
def test_a_mistake_ends_in_one_line(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run"
    if what != "nothing":
        path.mkdir()
    if what == "config alone":
        (path / "config.toml").write_text("")
    assert report.main([str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("error: ")


def test_torch_is_not_needed() -> None:
    line = "import sys, grpo.report.__main__; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], cwd=ROOT).returncode == 0


# --- the luck of the draw -------------------------------------------------------------------------------------------


def test_the_draw_is_judged_by_the_whole_run_as_the_trainer_does(run: Path) -> None:
    pool = run / "pool"
    pool.mkdir()
    names = {"love": ("love_a", "love_b"), "okay": ("okay_a", "okay_b")}
    lines = [{"tier": tier, "file_name": f"images/{name}.png"} for tier, both in names.items() for name in both]
    (pool / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "config.toml").write_text(f'[reward.weights]\njudge = 0.5\n[pool]\nsource = "{pool}"\n')
    drawn = {1: "love_a okay_a", 2: "love_b okay_b", 3: "love_a okay_b", 4: "love_b okay_a", 5: "love_a okay_a"}
    records = [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]
    for record in records:
        won = {name: 0.2 if "love" in name else 0.7 for name in drawn.get(record["step"], "love_b okay_b").split()}
        record["terms_info"] = {"judge": {"won": {**won, **({"love_b": 0.9} if "love_b" in won else {})}}}
    (run / "rollouts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row["references"] = drawn.get(row["step"], "love_b okay_b")
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    found_draws = draws(load(run))
    assert found_draws.note == ""
    from reward.base import Reference

    references = tuple(Reference(name, tier, b"") for tier, both in names.items() for name in both)
    strengths = Strengths(Pool(references, ""))
    for record in records:
        strengths.add(record["step"], [record["terms_info"]["judge"]["won"]])
    fit = strengths.fit()
    assert found_draws.effect is not None
    assert found_draws.adjusted is not None
    for row, effect, adjusted in zip(rows, found_draws.effect, found_draws.adjusted, strict=True):
        expected = fit.effect(row["references"].split(), row["step"])
        assert effect == pytest.approx(expected, abs=1e-12)
        if row["reward"] is not None:
            assert adjusted == pytest.approx(row["reward"] - 0.5 * expected, abs=1e-12)
    # love_b is beaten nearly always: draws with it are the easy ones.
    assert found_draws.effect[1] > 0.05 > -0.05 > found_draws.effect[0]


# --- measured once --------------------------------------------------------------------------------------------------


def test_paintings_are_measured_once(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = load(run), tmp_path / "features.jsonl"
    first = look(source, cache)
    monkeypatch.setattr(diversity.features, "measure_picture", lambda picture: pytest.fail("measured again"))
    second = look(source, cache)
    assert first is not None
    assert second is not None
    assert first.colours == second.colours
    assert all((first.features[group] == second.features[group]).all() for group in first.features)


def test_a_painting_that_has_changed_is_measured_again(run: Path, tmp_path: Path) -> None:
    source, cache = load(run), tmp_path / "features.jsonl"
    look(source, cache)
    Image.new("RGB", (32, 32), "white").save(run / "paintings" / "step_0001_00.png")
    seen = look(source, cache)
    assert seen is not None
    assert seen.colours[1, 0] == 0.0


def test_an_interrupted_report_goes_on(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, cache = load(run), tmp_path / "features.jsonl"
    measure, calls = diversity._measure, []

    def interrupted(*arguments: Any) -> dict[str, Any]:
        calls.append(arguments[0])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(diversity, "_measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        look(source, cache)
    cache.write_bytes(cache.read_bytes() + b'{"step": 3, "gro')  # and the last line cut short
    look(source, cache)
    assert calls == [(1, 0), (3, 0), (3, 0), (6, 0)]
    monkeypatch.setattr(diversity, "_measure", lambda *arguments: pytest.fail("measured again"))
    look(source, cache)


# --- side by side ---------------------------------------------------------------------------------------------------


def test_a_run_beside_a_published_table(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert report.main([str(run), str(FIXTURES / "published.csv"), "-o", str(out)]) == 0
    text = (out / "comparison.md").read_text()
    assert "|  | run | published | difference |" in text
    assert "| reward, first third | 0.200 | 0.330 | +0.130 |" in text
    assert "| &nbsp;&nbsp;last third | 0.550 | 0.570 | +0.020 |" in text
    assert f"| rollouts | 12 | {ABSENT} |  |" in text
    assert f"| share below 0.3, first third | 75.0% | {ABSENT} |  |" in text
    assert f"| rise: bad ones rarer | +0.160 | {ABSENT} |  |" in text
    assert f"| seconds a step, first third | 5.0 | {ABSENT} |  |" in text
    with Image.open(out / "comparison.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20) or ()}
    assert {(0xD9, 0x66, 0x3B), (0x2F, 0x6F, 0x8F)} <= colours


def test_steps_that_both_runs_have_are_compared(run: Path, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("step,reward\n" + "".join(f"{step},0.{step}\n" for step in range(2, 10)))
    out = tmp_path / "out"
    assert report.main([str(run), str(tmp_path / "b.csv"), "-o", str(out)]) == 0
    # Steps 2 to 6: (.1 + .5 + .6 + .5) / 4 = .425 against (.2 + .3 + .4 + .5 + .6) / 5 = .4
    assert "| reward of steps 2 to 6 | 0.425 | 0.400 | -0.025 |" in (out / "comparison.md").read_text()


def test_the_same_run_twice_is_refused(run: Path) -> None:
    assert report.main([str(run), str(run)]) == 2


# --- Markdown and pictures ------------------------------------------------------------------------------------------


def test_words_of_a_sketch_cannot_break_the_markdown(run: Path, tmp_path: Path) -> None:
    records = (run / "rollouts.jsonl").read_text().replace('"throws"', '"a | b <script>\\n# c"')
    (run / "rollouts.jsonl").write_text(records)
    text = _report(run, tmp_path / "out")
    assert "| &nbsp;&nbsp;rejected: a \\| b &lt;script> # c | 1 | 0 | 0 |" in text


def _drawn(sheet: Sheet, colour: tuple[int, int, int]) -> tuple[Any, Any]:
    pixels = np.asarray(Image.open(io.BytesIO(sheet.png())).convert("RGB")).astype(int)
    return (np.abs(pixels - colour).sum(axis=2) < 30).nonzero()


def test_a_line_lies_where_its_values_are_and_breaks_where_one_is_missing() -> None:
    sheet = Sheet(400, 300)
    panel = Panel(sheet, (0, 0, 400, 300), "", (1, 9), (0.0, 1.0))
    panel.line(list(range(1, 10)), [0.25, 0.25, 0.25, 0.25, None, 0.75, 0.75, 0.75, 0.75], "#ff0000")
    rows, columns = _drawn(sheet, (255, 0, 0))
    left, right = panel.at(4, 0.25), panel.at(6, 0.75)
    assert rows[columns < left[0]].mean() == pytest.approx(left[1], abs=1)
    assert rows[columns > right[0]].mean() == pytest.approx(right[1], abs=1)
    assert not ((columns > left[0] + 2) & (columns < right[0] - 2)).any()


def test_stacked_bars_stand_on_one_another() -> None:
    sheet = Sheet(400, 300)
    panel = Panel(sheet, (0, 0, 400, 300), "", (1, 4), (0.0, 4.0))
    panel.stacked([1, 2, 3, 4], [("", "#ff0000", [1, 1, 1, 1]), ("", "#0000ff", [2, None, 2, 2])])
    red, _ = _drawn(sheet, (255, 0, 0))
    blue, blue_columns = _drawn(sheet, (0, 0, 255))
    assert (red.min(), red.max()) == pytest.approx((panel.at(1, 1)[1], panel.at(1, 0)[1]), abs=1.5)
    assert (blue.min(), blue.max()) == pytest.approx((panel.at(1, 3)[1], panel.at(1, 1)[1]), abs=1.5)
    assert not (np.abs(blue_columns - panel.at(2, 0)[0]) < 20).any()


def test_axes() -> None:
    assert round_ticks(0.31, 0.69) == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7])
    assert round_ticks(5, 5)[0] < 5 < round_ticks(5, 5)[-1]
    assert step_ticks(1, 100) == [1, 20, 40, 60, 80, 100]
    assert step_ticks(3, 3) == [3]
    assert spread(None, [None]) == (0.0, 1.0)
    assert unbroken([1, 2, 3], [None, 1.0, None]) == [[(2, 1.0)]]
