"""The judge goes down: the run waits and goes on by itself, or stops; nothing is lost and nothing is paid twice."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from judge_parts import candidate, judge_at, references

from bench.judge_server import JudgeServer
from reward.calls import JudgeOutage, Line, Meter
from reward.faults import Fault
from reward.settings import VlmSettings
from reward.verdict import Answer


def until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def in_background(work):
    """Starts `work`; returns the thread and the list that receives its result or its exception."""
    result = []

    def run():
        try:
            result.append(work())
        except JudgeOutage as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, result


@pytest.mark.parametrize("kind", ["503", "reset", "401", "402", "html"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_run_waits_and_loses_no_comparison(kind, concurrency, tmp_path):
    said = []
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, said.append, concurrency=concurrency)
        server.dark(kind)
        thread, result = in_background(lambda: judge.score(candidate(100), references(90, 95, 105, 110)))
        until(lambda: len(said) >= 2)
        server.light()
        thread.join(10)
        assert set(server.delivered.values()) == {1}
        assert len(server.delivered) == 8
    (score,) = result
    assert score.value == 0.5
    assert score.info["missing"] == {}
    assert said[0].startswith("judge down: ")
    assert "looking again in 0.1 s" in said[0]
    assert said[1].startswith("judge down for 0 s: ")
    assert said[-1].startswith("judge is back after ")
    totals = judge.totals()
    assert totals.outages == 1
    assert totals.waited_s >= 0.1
    assert totals.missing == 0
    assert totals.calls == totals.answers + sum(totals.faults.values())


def test_only_one_call_looks_at_a_time(tmp_path):
    said = []
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, said.append, concurrency=6, tries=1)
        server.dark()
        thread, _ = in_background(lambda: judge.score(candidate(100), references(90, 95, 105)))
        until(lambda: len(said) >= 2)  # what was in flight when the judge went down has come back by the first look
        before = len(server.requests)
        until(lambda: len(said) >= 6)
        looks = server.requests[before:]
        server.light()
        thread.join(10)
    assert len(looks) <= 5
    assert all(later.at - earlier.at >= 0.08 for earlier, later in itertools.pairwise(looks))
    own = {look.key for look in looks if len(look.first) < 200}  # the known pictures are larger
    assert len(own) > 1, "one comparison that fails for its own sake must not hold up the rest"


def test_no_money_stops_the_asking_at_once(tmp_path):
    said = []
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, said.append, concurrency=1, outage_after=50, pause_s=60.0)
        server.dark("402")
        thread, result = in_background(lambda: judge.score(candidate(100), references(90, 95)))
        until(lambda: said)
        judge.stop("interrupted")
        thread.join(5)
        assert len(server.requests) == 1
    assert "402" in str(result[0])


def test_told_to_stop_while_it_waits_the_run_ends_at_once(tmp_path):
    said = []
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, said.append, pause_s=600.0)
        server.dark()
        threads = [
            in_background(lambda level=level: judge.score(candidate(level), references(90))) for level in (1, 2, 3)
        ]
        until(lambda: said)
        until(lambda: judge.line.waiting)
        started = time.monotonic()
        judge.stop("Ctrl-C")
        for thread, result in threads:
            thread.join(5)
            assert isinstance(result[0], JudgeOutage)
            assert "Ctrl-C" in str(result[0])
        assert time.monotonic() - started < 5


def test_a_run_that_is_told_to_stop_may_end_its_step_where_the_judge_is_well(tmp_path):
    with JudgeServer(fault=lambda request: "500" if request.attempt == 0 else None) as server:
        judge = judge_at(server, tmp_path)
        judge.stop("Ctrl-C")
        assert judge.score(candidate(100), references(90)).value == 1.0


def test_on_outage_stop_says_what_to_do_and_keeps_what_was_answered(tmp_path):
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, on_outage="stop", concurrency=1)
        judge.score(candidate(100), references(90))
        server.dark()
        with pytest.raises(JudgeOutage, match=r"is down: 503 .*resume the run.*judge\.sqlite") as caught:
            judge.score(candidate(100), references(90, 95))
        assert "\n" not in str(caught.value)
        with pytest.raises(JudgeOutage):
            judge.score(candidate(101), references(90))
        server.light()
        again = judge_at(server, tmp_path, on_outage="stop")
        assert again.score(candidate(100), references(90, 95)).value == 1.0
        assert set(server.delivered.values()) == {1}


def test_a_comparison_hit_when_the_judge_goes_down_is_asked_again_after_the_outage(tmp_path):
    """Fewer comparisons than `outage_after` fail: they must not be given up before it is known that nothing answers."""
    said = []
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, said.append, outage_after=20, tries=2)
        server.dark()
        thread, result = in_background(lambda: judge.score(candidate(100), references(90)))
        until(lambda: said)
        server.light()
        thread.join(10)
    assert result[0].value == 1.0


def test_a_comparison_that_fails_alone_does_not_bring_the_judge_down(tmp_path):
    said = []
    with JudgeServer(delay_s=0.01) as server:
        bad = []
        server.fault = lambda request: "500" if request.key in bad else None
        judge = judge_at(server, tmp_path, said.append, outage_after=1000, concurrency=4)
        judge.score(candidate(100), references(90))
        bad.append(server.requests[0].key)
        other = judge_at(server, tmp_path / "other", said.append, outage_after=1000, concurrency=4)
        score = other.score(candidate(100), references(90, 91, 92, 93, 94))
    assert set(score.info["missing"]) == {"ref 90"}
    assert score.value == 1.0
    assert not said


def test_a_fault_of_all_kinds_and_a_dark_time_leave_no_trace_in_the_scores(tmp_path):
    with JudgeServer(fail_rate=0.3, seed=1) as server:
        judge = judge_at(server, tmp_path, tries=8, timeout_s=0.3, concurrency=8)
        levels = range(60, 100, 4)
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(judge.score, candidate(level), references(70, 80, 90)) for level in levels]
            until(lambda: len(server.requests) > 20)
            server.dark("reset")
            until(lambda: judge.totals().outages, 20)
            time.sleep(0.3)
            server.light()
            scores = [future.result(30) for future in futures]
        assert set(server.delivered.values()) == {1}
    for level, score in zip(levels, scores, strict=True):
        assert score.value == sum(level > other or 0.5 * (level == other) for other in (70, 80, 90)) / 3


def test_a_comparison_that_always_fails_does_not_hold_up_the_run_for_ever(tmp_path):
    """Alone in the step it looks like an outage; a known question shows that it is none."""
    said = []
    with JudgeServer() as server:
        judge = judge_at(server, tmp_path, said.append, pause_s=0.02)
        judge.probe()
        server.fault = lambda request: None if len(request.first) > 200 else "500"
        score = judge.score(candidate(100), references(90))
    assert score.value is None
    assert score.cause.startswith("500")
    assert said[-1].startswith("judge is back")


def test_an_outage_between_two_tries_takes_none_of_them_away():
    """The reply was unreadable, the second try was due in a minute, and then the judge went down."""
    answer = Answer(1.0)
    line = Line(
        "judge", VlmSettings(tries=2, outage_after=1, pause_s=0.05), Meter(0, 0), lambda: answer, lambda text: None
    )
    unreadable = [Fault("verdict", "no verdict", of_service=False, after_s=60.0)]
    down = [Fault("503", "503", again=False)]

    def send(faults):
        if faults:
            raise faults.pop()
        return answer

    thread, result = in_background(lambda: line.call(lambda: send(unreadable)))
    until(lambda: not unreadable)
    assert line.call(lambda: send(down)) is answer
    thread.join(10)
    assert result == [answer]
