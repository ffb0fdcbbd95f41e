"""The judge over the network, against a server that fails in every way a real one does."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from judge_parts import CRITERIA, candidate, judge_at, references, settings_for, shade

from bench.judge_server import JudgeServer, always_first, brighter
from render.errors import SetupError, UserError
from render.painting import Outcome, Painting
from reward.base import Candidate
from reward.calls import Totals
from reward.judge_remote import RemoteJudge
from reward.verdict import Prompt, sigmoid

AGAIN = ["429", "429_date", "500", "503", "500_list", "hang", "html", "json", "empty", "null", "verdict", "reset"]
COUNTED = {"429_date": "429", "500_list": "500", "hang": "timeout", "empty": "json"}


def first_time(*kinds):
    """Fails the first tries of every pair, in these ways one after another."""
    return lambda request: kinds[request.attempt] if request.attempt < len(kinds) else None


def only(kind, number=0):
    return lambda request: kind if request.number == number else None


@pytest.mark.parametrize("kind", AGAIN)
def test_a_passing_fault_is_asked_again_and_counted_by_its_kind(kind, tmp_path):
    with JudgeServer(fault=first_time(kind), retry_after="0") as server:
        judge = judge_at(server, tmp_path, timeout_s=0.3 if kind == "hang" else 5.0)
        score = judge.score(candidate(200), references(100))
        totals = judge.totals()
    assert score.value == 1.0
    assert totals.faults == {COUNTED.get(kind, kind): 2}
    assert (totals.calls, totals.answers, totals.retries) == (4, 2, 2)


@pytest.mark.parametrize("kind", ["no_logprobs"])
def test_soft_an_answer_without_log_probabilities_is_asked_again(kind, tmp_path):
    with JudgeServer(fault=first_time(kind)) as server:
        judge = judge_at(server, tmp_path, mode="soft")
        assert judge.score(candidate(200), references(100)).value > 0.9
        assert judge.totals().faults == {kind: 2}


@pytest.mark.parametrize("kind", ["400"])
def test_a_refused_request_is_not_asked_again_and_its_comparison_is_missing(kind, tmp_path):
    with JudgeServer(fault=lambda request: kind if request.first == shade_of(server, 50) else None) as server:
        judge = judge_at(server, tmp_path)
        score = judge.score(candidate(200), references(100, 50))
        assert judge.totals().faults == {kind: 1}
        assert len(server.requests) == 4
    assert score.value == 1.0
    assert set(score.info["won"]) == {"ref 100"}
    assert score.info["missing"]["ref 50"].startswith("400")
    assert judge.totals().missing == 1


def shade_of(server, level):
    from reward.pictures import prepared

    return prepared(shade(level), 512).png


def test_a_comparison_that_fails_is_left_out_and_never_lost(tmp_path):
    with JudgeServer() as server:
        server.fault = lambda request: "verdict" if shade_of(server, 90) in (request.first, request.second) else None
        judge = judge_at(server, tmp_path)
        score = judge.score(candidate(100), references(90, 91, 92))
    assert score.info["won"] == {"ref 91": 1.0, "ref 92": 1.0}
    assert score.value == 1.0


def test_with_no_comparison_left_there_is_no_score(tmp_path):
    with JudgeServer(fault=lambda request: "verdict") as server:
        score = judge_at(server, tmp_path).score(candidate(100), references(90, 91))
    assert score.value is None
    assert score.cause.startswith("verdict")
    assert len(score.info["missing"]) == 2


def test_retry_after_is_waited_for(tmp_path):
    with JudgeServer(fault=only("429"), retry_after="0.4") as server:
        judge = judge_at(server, tmp_path, concurrency=1)
        assert judge.score(candidate(100), references(90)).value == 1.0
        first, again = server.requests[:2]
    assert first.key == again.key
    assert again.at - first.at >= 0.4


def test_no_more_tries_than_the_settings_allow(tmp_path):
    with JudgeServer(fault=lambda request: "verdict") as server:
        judge_at(server, tmp_path, tries=4).score(candidate(100), references(90))
        assert len(server.requests) == 8


@pytest.mark.parametrize("mode", ["verdict", "soft"])
def test_a_judge_that_always_names_the_first_gives_every_painting_one_half(mode, tmp_path):
    with JudgeServer(always_first) as server:
        judge = judge_at(server, tmp_path, mode=mode)
        scores = [judge.score(candidate(level), references(10, 90, 250)) for level in (0, 90, 255)]
    assert [score.value for score in scores] == [0.5] * 3
    assert scores[0].info["orders"]["ref 10"] == pytest.approx([1.0, 1.0] if mode == "verdict" else [sigmoid(2.0)] * 2)
    assert [score.info["split"] for score in scores] == ([3] * 3 if mode == "verdict" else [0] * 3)
    assert scores[0].info["bias"] == (None if mode == "verdict" else pytest.approx(2.0))


def test_soft_the_value_is_the_honest_lead_through_the_temperature(tmp_path):
    with JudgeServer(lambda first, second: brighter(first, second) + 1.5) as server:
        score = judge_at(server, tmp_path, mode="soft", temperature=2.0).score(candidate(130), references(100))
    assert score.value == pytest.approx(sigmoid(1.5 / 2.0), abs=1e-6)  # a lead of 30 shades is 1.5
    assert score.info["bias"] == pytest.approx(1.5, abs=1e-6)


def test_soft_letters_that_hold_under_half_of_the_probability_are_discarded(tmp_path):
    with JudgeServer() as server:
        server.fault = lambda request: "scattered" if request.number == 0 else None
        judge = judge_at(server, tmp_path, mode="soft", concurrency=1)
        score = judge.score(candidate(200), references(100, 110))
        assert set(score.info["won"]) == {"ref 110"}
        assert "20%" in score.info["missing"]["ref 100"]
        totals = judge.totals()
        assert (totals.calls, totals.answers, totals.faults) == (4, 3, {"mass": 1})


def test_without_a_painting_or_a_reference_nobody_is_asked(tmp_path):
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path)
        unpainted = Candidate("", "", Painting(Outcome.UNSCORED, "browser_died"))
        assert judge.score(unpainted, references(1)).value is None
        assert judge.score(candidate(1), ()).value is None
        assert not server.requests


def test_no_more_calls_in_flight_than_allowed_by_all_threads_together(tmp_path):
    with JudgeServer(delay_s=0.05) as server:
        judge = judge_at(server, tmp_path, concurrency=3)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda level: judge.score(candidate(level), references(100, 110)), range(4)))
        assert server.most_in_flight == 3
        assert len(server.requests) == 16


def test_the_same_comparison_wanted_twice_at_once_is_asked_once(tmp_path):
    with JudgeServer(delay_s=0.1) as server:
        judge = judge_at(server, tmp_path)
        with ThreadPoolExecutor(4) as pool:
            scores = list(pool.map(lambda _: judge.score(candidate(9), references(5)), range(4)))
        assert len(server.requests) == 2
        assert set(server.delivered.values()) == {1}
    assert all(score == scores[0] for score in scores)
    assert judge.totals().cached == 6


def test_a_judge_that_is_started_again_pays_nothing_twice(tmp_path):
    with JudgeServer() as server:
        for _ in range(2):
            judge = judge_at(server, tmp_path)
            judge.probe()
            score = judge.score(candidate(200), references(100, 110))
            judge.close()
        assert len(server.requests) == 5
        totals = judge.totals()
    assert (totals.calls, totals.cached, totals.tokens_in) == (0, 5, 0)
    assert score.value == 1.0
    assert score.info["reasons"]["ref 100"][0].startswith("it is better by")


@pytest.mark.parametrize("changed", [{"model": "other"}, {"mode": "soft"}, {"image_size": 64}])
def test_an_answer_is_kept_for_the_question_that_it_answers(changed, tmp_path):
    with JudgeServer() as server:
        judge_at(server, tmp_path).score(candidate(200), references(100))
        judge_at(server, tmp_path, **changed).score(candidate(200), references(100))
        assert len(server.requests) == 4


def test_asked_afresh_the_cache_is_passed_by_and_left_as_it_is(tmp_path):
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path)
        assert judge.score(candidate(9), references(5)).value == 1.0
        server.rule = always_first
        assert [judge.ask_afresh(shade(5), shade(9)) for _ in range(2)] == [1.0, 1.0]
        assert len(server.requests) == 4
        assert judge.score(candidate(9), references(5)).value == 1.0
        server.fault = lambda request: "400"
        assert judge.ask_afresh(shade(5), shade(9)) is None


def test_a_damaged_cache_is_named_in_one_line(tmp_path):
    (tmp_path / "judge.sqlite").write_bytes(b"this is no database, however long it is " * 100)
    with JudgeServer() as server, pytest.raises(UserError, match=r"judge\.sqlite cannot be used") as caught:
        judge_at(server, tmp_path)
    assert "\n" not in str(caught.value)


def test_the_totals_add_up_under_faults_of_all_kinds(tmp_path):
    with JudgeServer(fail_rate=0.4, seed=3) as server:
        judge = judge_at(server, tmp_path, tries=8, timeout_s=0.3, price_in=2.0, price_out=10.0, concurrency=8)
        before = judge.totals()
        scores = [judge.score(candidate(level), references(100, 110, 120)) for level in (90, 115, 130)]
        totals = judge.totals()
        assert totals.calls == len(server.requests) == totals.answers + sum(totals.faults.values())
        assert totals.calls - totals.retries == 18
        assert sum(totals.faults.values()) == sum(server.faults.values()) > 5
        assert set(server.delivered.values()) == {1}
    assert [round(score.value, 3) for score in scores] == [0.0, 0.667, 1.0]
    assert totals.cost == pytest.approx((2.0 * totals.tokens_in + 10.0 * totals.tokens_out) / 1e6)
    assert totals.tokens_in >= 18 * 700
    assert totals - before == totals
    assert totals - totals == Totals()


def test_the_request_is_the_protocols(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret")
    with JudgeServer() as server:
        settings = settings_for(server, tmp_path, key_variable="JUDGE_KEY", model="vendor/model")
        RemoteJudge(settings).ask(shade(1), shade(2), Prompt("soft", CRITERIA))
        request = server.requests[0]
    assert request.payload["model"] == "vendor/model"
    assert (request.payload["max_tokens"], request.payload["temperature"], request.payload["top_logprobs"]) == (1, 0, 5)
    assert [part["type"] for part in request.payload["messages"][0]["content"]] == [
        *("text", "image_url", "text", "image_url", "text")
    ]
    assert (request.first, request.second) == (shade(1), shade(2))
    assert request.headers["authorization"] == "Bearer secret"


def test_a_token_of_hugging_face_is_not_sent_to_a_server_of_somebody_else(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with JudgeServer() as server:
        judge_at(server, tmp_path).score(candidate(2), references(1))
        assert "hf_secret" not in str([request.headers for request in server.requests])


def test_a_provider_is_asked_through_the_router_with_the_token(tmp_path, monkeypatch):
    import huggingface_hub
    from huggingface_hub.hf_api import InferenceProviderMapping
    from huggingface_hub.inference._providers._common import HARDCODED_MODEL_INFERENCE_MAPPING

    mapping = InferenceProviderMapping(
        provider="together", hf_model_id="org/judge", providerId="judge-turbo", status="live", task="conversational"
    )
    monkeypatch.setitem(HARDCODED_MODEL_INFERENCE_MAPPING, "together", {"org/judge": mapping})
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with JudgeServer() as server:
        router = server.url.removesuffix("/v1")
        monkeypatch.setattr(huggingface_hub.constants, "INFERENCE_PROXY_TEMPLATE", router)
        judge = judge_at(server, tmp_path, backend="providers", provider="together", model="org/judge")
        judge.probe()
        assert judge.score(candidate(200), references(100)).value == 1.0
        assert {request.payload["model"] for request in server.requests} == {"judge-turbo"}
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer hf_secret"}
    assert judge.title == "org/judge at together, verdict"


def test_a_model_that_the_provider_does_not_have_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, backend="providers", provider="nobody", model="org/judge")
        with pytest.raises(SetupError, match="'nobody' not supported"):
            judge.probe()
    assert judge.totals().calls == 1


# The first question ---------------------------------------------------------------------------------------------------


def test_a_judge_without_log_probabilities_is_asked_for_verdicts_and_says_so(tmp_path):
    with JudgeServer(fault=lambda request: "no_logprobs" if request.soft else None) as server:
        for _ in range(2):
            judge = judge_at(server, tmp_path, mode="soft")
            judge.probe()
            assert judge.prompt.mode == "verdict"
            assert any("no log-probabilities" in note for note in judge.notes)
            asked = len(server.requests)
        assert judge.score(candidate(200), references(100)).value == 1.0
    assert asked == 4  # three tries for letters and one verdict, none of them again in the second start


def test_a_judge_that_refuses_log_probabilities_is_asked_for_verdicts(tmp_path):
    with JudgeServer(fault=lambda request: "400" if request.soft else None) as server:
        judge = judge_at(server, tmp_path, mode="soft")
        judge.probe()
    assert judge.prompt.mode == "verdict"
    assert "400" in judge.notes[0]


@pytest.mark.parametrize(
    ("kind", "said"), [("401", "token"), ("404", "name"), ("402", "credits"), ("503", "503"), ("verdict", "verdict")]
)
def test_a_judge_that_does_not_answer_is_refused_in_one_line(kind, said, tmp_path):
    with JudgeServer(fault=lambda request: kind) as server:
        judge = judge_at(server, tmp_path)
        with pytest.raises(SetupError, match=said) as caught:
            judge.probe()
    assert "\n" not in str(caught.value)
    assert "does not answer" in str(caught.value)


def test_a_server_that_is_not_there_is_refused_in_one_line(tmp_path):
    with JudgeServer() as server:
        pass
    judge = judge_at(server, tmp_path)
    with pytest.raises(SetupError, match="is the server running"):
        judge.probe()
    assert set(judge.totals().faults) == {"refused"}


def test_a_missing_token_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("MY_TOKEN", raising=False)
    with JudgeServer() as server, pytest.raises(SetupError, match="MY_TOKEN"):
        RemoteJudge(settings_for(server, tmp_path, backend="providers", key_variable="MY_TOKEN"))


def test_a_network_that_is_switched_off_is_said(tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with JudgeServer() as server, pytest.raises(SetupError, match="HF_HUB_OFFLINE"):
        RemoteJudge(settings_for(server, tmp_path))


def test_the_jitter_leaves_pythons_random_numbers_alone(tmp_path):
    import random

    random.seed(5)
    expected = random.random()
    random.seed(5)
    with JudgeServer(fault=first_time("500")) as server:
        judge_at(server, tmp_path).score(candidate(2), references(1))
    assert random.random() == expected


def test_a_closed_judge_holds_nobody_up(tmp_path):
    with JudgeServer(fault=lambda request: "hang") as server:
        judge = judge_at(server, tmp_path, timeout_s=20.0)
        failed = []

        def ask():
            try:
                judge.score(candidate(2), references(1))
            except UserError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        deadline = time.monotonic() + 10
        while len(server.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        judge.close()
        thread.join(5)
        assert failed
