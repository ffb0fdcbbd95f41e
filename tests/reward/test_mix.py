import itertools

import pytest

from bench.judge_server import JudgeServer
from render.errors import ConfigError, SetupError
from render.painting import Outcome, Painting
from reward.base import Candidate, Score
from reward.gate import GateResult
from reward.mix import Absent, Mix, build_mix, display_name
from reward.pool import Pool
from reward.settings import RewardSettings, SubjectSettings, VlmSettings, WeightSettings

CANDIDATE = Candidate("reply", "sketch", Painting(Outcome.PAINTED, png=b"png", coverage=0.3))
WEIGHTS = {"gate": 0.05, "length": 0.15, "taste": 0.8}


class FixedGate:
    def __init__(self, outcome="passed", reason="", detail=""):
        self.result = GateResult(outcome, reason, detail)

    def check(self, candidate):
        return self.result


class FixedTerm:
    stand_in = False

    def __init__(self, name, value, cause=""):
        self.name, self.value, self.cause, self.asked = name, value, cause, 0

    def score(self, candidate, references):
        self.asked += 1
        if isinstance(self.value, Exception):
            raise self.value
        return Score(self.value, {"from": self.name}, self.cause)


def verdict(weights=WEIGHTS, gate=None, **values):
    terms = [FixedTerm(name, value, "no answer" if value is None else "") for name, value in values.items()]
    return Mix(weights, gate or FixedGate(), terms).judge(CANDIDATE, ()), terms


def test_the_reward_is_the_weighted_sum_and_the_breakdown_adds_up_to_it():
    result, _ = verdict(length=0.5, taste=0.25)
    assert result.outcome == "scored"
    assert result.reward == pytest.approx(0.05 + 0.15 * 0.5 + 0.8 * 0.25, abs=1e-12)
    assert result.reward == pytest.approx(sum(WEIGHTS[name] * score.value for name, score in result.terms.items()))
    assert result.terms["taste"].info == {"from": "taste"}


def test_a_refused_sketch_gets_zero_and_no_term_is_asked():
    result, terms = verdict(gate=FixedGate("rejected", "text", "line 3 writes"), length=1.0, taste=1.0)
    assert (result.reward, result.outcome, result.reason, result.detail) == (0.0, "rejected", "text", "line 3 writes")
    assert [term.asked for term in terms] == [0, 0]


def test_a_fault_of_the_machine_is_never_a_zero():
    result, _ = verdict(gate=FixedGate("unscored", "browser_died", "signal 9"), length=1.0, taste=1.0)
    assert (result.reward, result.outcome, result.reason) == (None, "unscored", "browser_died")


def test_a_paid_term_without_a_score_voids_the_reward_and_says_why():
    result, _ = verdict(length=1.0, taste=None)
    assert (result.reward, result.outcome, result.reason, result.detail) == (None, "unscored", "taste", "no answer")
    assert result.terms["length"].value == 1.0


def test_an_unpaid_term_is_asked_and_logged_but_voids_nothing():
    weights = {"gate": 0.5, "length": 0.5, "taste": 0.0}
    result, terms = verdict(weights, length=1.0, taste=None)
    assert result.reward == pytest.approx(1.0)
    assert terms[1].asked == 1
    assert result.terms["taste"].value is None


def test_a_fault_in_a_scorer_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        verdict(length=1.0, taste=ZeroDivisionError())


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan")])
def test_a_score_outside_its_range_is_a_fault_of_the_program(value):
    with pytest.raises(ValueError, match="taste answered"):
        verdict(length=1.0, taste=value)


@pytest.mark.parametrize("weights", [{"gate": 1.0}, {**WEIGHTS, "charm": 0.1}])
def test_weights_and_terms_must_match(weights):
    with pytest.raises(ValueError, match="do not match"):
        verdict(weights, length=1.0, taste=1.0)


def test_weights_that_do_not_sum_to_one_are_refused_with_their_sum():
    with pytest.raises(ConfigError, match=r"must sum to 1, but .*judge 0.5 = 1.2$"):
        WeightSettings(preference=0.55, judge=0.5).validate()
    WeightSettings(gate=0.1, length=0.2, coverage=0.3, preference=0.4, judge=0.0).validate()  # 1 but for rounding


def test_what_the_judge_says_at_its_start_reaches_the_caller(pool, monkeypatch, tmp_path):
    monkeypatch.setenv("KEY", "k")
    with JudgeServer(fault=lambda request: "no_logprobs" if request.soft else None) as server:
        vlm = VlmSettings(
            backend="server", base_url=server.url, mode="soft", key_variable="KEY", cache=str(tmp_path / "answers")
        )
        said = []
        mix = build_mix(RewardSettings(judge="vlm", vlm=vlm), SubjectSettings(), FixedGate(), pool, said.append)
        assert any("asked for verdicts" in line for line in said)
        best = pool.tier("love")[0]
        candidate = Candidate("", "", Painting(Outcome.PAINTED, png=best.png, coverage=0.3))
        judged = mix.judge(candidate, pool.references[1:3])
        assert judged.outcome == "scored"
        assert (mix.totals().missing, mix.totals().answers) == (0, 5)
        mix.close()


def test_the_built_mix_scores_a_painting_with_every_term(pool):
    mix = build_mix(RewardSettings(), SubjectSettings(), FixedGate(), pool)
    best = pool.tier("love")[0]
    candidate = Candidate("", best.source, Painting(Outcome.PAINTED, png=best.png, coverage=0.3))
    result = mix.judge(candidate, pool.references[:4])
    assert set(result.terms) == {"gate", "length", "coverage", "preference", "judge"}
    assert 0.4 < result.reward <= 1.0
    shown = [display_name(term) for term in mix.terms]
    assert shown == ["length", "coverage", "preference (stand-in)", "judge (stand-in)"]


def test_the_same_candidate_gets_the_same_reward_whatever_was_judged_before(pool):
    mix = build_mix(RewardSettings(), SubjectSettings(), FixedGate(), pool)
    candidates = [
        Candidate("", "", Painting(Outcome.PAINTED, png=reference.png, coverage=0.3))
        for reference in pool.references[:3]
    ]
    orders = list(itertools.permutations(range(3)))
    seen = [{index: mix.judge(candidates[index], pool.references[:4]).reward for index in order} for order in orders]
    assert all(rewards == seen[0] for rewards in seen)


def test_scorers_that_are_not_at_hand_leave_the_reward_open_and_say_why(monkeypatch):
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    settings = RewardSettings(judge="vlm", vlm=VlmSettings(key_variable="NO_SUCH_TOKEN"))
    notes = []
    parts = (settings, SubjectSettings(), FixedGate(), Pool((), "no pool"), notes.append)
    mix = build_mix(*parts, absent={"preference": "no pool here"})
    assert [type(term) for term in mix.terms[2:]] == [Absent, Absent]
    assert notes[0] == "without preference: no pool here"
    assert notes[1].startswith("without judge: ")
    assert "NO_SUCH_TOKEN" in notes[1]
    result = mix.judge(CANDIDATE, ())
    assert (result.reward, result.outcome, result.reason) == (None, "unscored", "preference")
    assert result.terms["coverage"].value == 1.0
    assert "NO_SUCH_TOKEN" in result.terms["judge"].cause
    mix.close()
    monkeypatch.setattr("reward.mix.Study", lambda pool: None)
    monkeypatch.setattr("reward.mix.PreferenceStandIn", lambda study: FixedTerm("preference", 0.5))
    with pytest.raises(SetupError, match="NO_SUCH_TOKEN"):  # a run must have them all
        build_mix(*parts)
