"""Before the start: what is missing, what it will cost, and that the stand-in judges as it always did."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tiny_qwen3vl
from judge_parts import candidate, references, settings_for

from bench.judge_server import JudgeServer
from render.errors import SetupError
from render.painting import Outcome, Painting
from reward.base import Candidate
from reward.calls import Totals
from reward.judge import build_judge
from reward.judge_setup import cost_estimate, missing
from reward.local import STEEPNESS, PoolJudgeStandIn
from reward.settings import RewardSettings, SubjectSettings, VlmSettings

SUBJECT = SubjectSettings()


def no_study():
    raise AssertionError("the vision-language judge needs no study")


def test_the_stand_ins_numbers_are_those_of_its_formula_to_the_last_bit(pool, study):
    stand_in = PoolJudgeStandIn(study)

    def wins(first, second):
        own, other = stand_in.distance(first) ** STEEPNESS, stand_in.distance(second) ** STEEPNESS
        return other / (own + other)

    judge = build_judge(RewardSettings(), SUBJECT, lambda: study)
    for reference in pool.references[::3]:
        png = reference.png
        found = judge.score(Candidate("", "", Painting(Outcome.PAINTED, png=png)), pool.references[:4])
        won = {other.name: (wins(png, other.png) + 1.0 - wins(other.png, png)) / 2.0 for other in pool.references[:4]}
        assert found.info["won"] == won
        assert found.value == float(np.mean(list(won.values())))
        assert won == {other.name: stand_in.compare(png, other.png) for other in pool.references[:4]}
    assert judge.stand_in
    assert judge.totals() == Totals()


def test_a_judge_is_built_from_the_settings_and_asked_once(tmp_path):
    with JudgeServer() as server:
        settings = RewardSettings(judge="vlm", vlm=settings_for(server, tmp_path))
        judge = build_judge(settings, replace(SUBJECT, criteria="- Better: brighter."), no_study)
        assert len(server.requests) == 1
        assert "- Better: brighter." in server.requests[0].payload["messages"][0]["content"][0]["text"]
        assert judge.score(candidate(9), references(5)).value == 1.0
    assert not judge.stand_in
    assert judge.title == f"tiny at {server.url}, verdict"


def test_a_judge_that_does_not_answer_stops_the_start(tmp_path):
    with JudgeServer(fault=lambda request: "401") as server:
        settings = RewardSettings(judge="vlm", vlm=settings_for(server, tmp_path, key_variable="JUDGE_KEY"))
        with pytest.raises(SetupError, match="JUDGE_KEY"):
            build_judge(settings, SUBJECT, no_study)


def test_a_missing_token_is_named_before_anything_starts(monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    (line,) = missing(VlmSettings())
    assert "HF_TOKEN" in line
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    assert missing(VlmSettings()) == []


def test_a_server_needs_no_token():
    assert missing(VlmSettings(backend="server", base_url="http://127.0.0.1:9/v1")) == []


def test_missing_weights_are_named_with_what_fetches_them(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    (line,) = missing(VlmSettings(backend="transformers", model="org/model"))
    assert "lacks config.json" in line
    assert "hf download org/model" in line


def test_a_folder_is_whole_or_says_which_file_it_lacks(tmp_path):
    folder = tiny_qwen3vl.save(tmp_path / "model")
    settings = VlmSettings(backend="transformers", model=str(folder))
    assert missing(settings) == []
    (folder / "model.safetensors").unlink()
    (line,) = missing(settings)
    assert "lacks model.safetensors" in line


@pytest.mark.parametrize("mode", ["verdict", "soft"])
def test_the_estimate_is_near_what_a_run_pays(mode, tmp_path):
    settings = VlmSettings(mode=mode, price_in=0.13, price_out=0.52)
    estimate = cost_estimate(settings, steps=110, group=8, references=4)
    assert estimate.calls == 110 * 64
    assert 600 < estimate.tokens_in / estimate.calls < 1200
    expected = (0.13 * estimate.tokens_in + 0.52 * estimate.tokens_out) / 1e6
    assert estimate.money == pytest.approx(expected)
    assert cost_estimate(replace(settings, price_in=0.0, price_out=0.0), 1, 8, 4).money is None


def test_a_step_is_the_difference_of_two_totals():
    before = Totals(calls=3, answers=2, cost=0.25, faults={"429": 1})
    after = Totals(calls=9, answers=6, cost=1.0, faults={"429": 1, "reset": 2})
    assert after - before == Totals(calls=6, answers=4, cost=0.75, faults={"reset": 2})


def test_checking_and_the_laptops_judge_need_neither_torch_nor_transformers():
    code = (
        "import sys, reward.judge, reward.judge_setup as s; from reward.settings import VlmSettings; "
        "s.missing(VlmSettings()); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
