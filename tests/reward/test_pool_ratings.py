"""What ratings come to, and that none is lost: the file, the events, the server without a browser."""

import http.client
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import threading

import pytest
from judge_parts import shade

from render.errors import UserError
from reward.pool import workshop
from reward.pool.rate import RatingServer
from reward.pool.ratings import PRIOR_SD, Ratings, Refused, bradley_terry
from reward.pool.workshop import Item, Log, items, read_lines


def rate(key, name, rating):
    return {"id": key, "kind": "rate", "name": name, "rating": rating}


def pair(key, left, right, winner):
    return {"id": key, "kind": "pair", "left": left, "right": right, "winner": winner}


# ---- events -----------------------------------------------------------------------------------------------------


def test_the_later_rating_counts_and_an_undo_brings_the_earlier_one_back():
    events = [rate("1", "a", "meh"), rate("2", "b", "okay"), rate("3", "a", "love")]
    assert Ratings("ab", events).by_name() == {"a": "love", "b": "okay"}
    undone = Ratings("ab", [*events, {"id": "4", "kind": "undo", "undoes": "3"}])
    assert undone.by_name() == {"a": "meh", "b": "okay"}
    undone.add(rate("3", "a", "love"))  # the page sends again what it has no answer to
    assert undone.by_name()["a"] == "meh"


@pytest.mark.parametrize(
    "event",
    [
        rate("1", "nobody", "love"),
        rate("1", "a", "great"),
        rate("", "a", "love"),
        pair("1", "a", "a", "left"),
        pair("1", "a", "b", "both"),
        {"id": "1", "kind": "undo", "undoes": "2"},
        {"id": "1", "kind": "delete"},
        [],
    ],
)
def test_what_cannot_be_is_refused(event):
    with pytest.raises(Refused):
        Ratings("ab").check(event)


def test_strengths_of_two_are_where_gradient_and_prior_balance():
    found = bradley_terry([("a", "b", 1.0), ("a", "b", 1.0), ("a", "b", 0.5)])
    beta = found["a"].beta
    assert found["b"].beta == pytest.approx(-beta)
    # d/d beta of 2.5 log sigmoid(2 beta) + .5 log sigmoid(-2 beta) - beta^2 / PRIOR_SD^2 (two equal priors) is 0.
    share = 1 / (1 + math.exp(-2 * beta))
    assert 2 * (2.5 - 3 * share) == pytest.approx(2 * beta / PRIOR_SD**2)
    assert found["a"].pairs == 3


def test_strengths_order_what_the_pairs_order_and_surprises_do_not_upset_the_fit():
    generator = random.Random(0)
    truth = {name: place for place, name in enumerate("abcdefgh")}
    pairs = []
    for _ in range(200):
        left, right = generator.sample(list(truth), 2)
        chance = 1 / (1 + math.exp(truth[right] - truth[left]))
        pairs.append((left, right, float(generator.random() < chance)))
    found = bradley_terry(pairs)
    assert sorted(found, key=lambda name: found[name].beta) == list(truth)


def test_pairs_begin_with_those_that_were_compared_least_and_never_repeat():
    ratings, generator = Ratings("abcde"), random.Random(1)
    seen = []
    while (found := ratings.next_pair("abcde", generator)) is not None:
        if len(seen) < 2:
            assert not {name for pair in seen for name in pair} & set(found)
        seen.append(found)
        ratings.add(pair(str(len(seen)), *found, "left"))
    assert len({frozenset(pair) for pair in seen}) == len(seen) == 10


# ---- the file ---------------------------------------------------------------------------------------------------


def test_a_line_cut_short_goes_and_the_next_one_is_whole(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"id": "1"}\n{"id": "2", "na')
    log = Log(path)
    log.append({"id": "3"})
    log.close()
    assert log.records == [{"id": "1"}]
    assert read_lines(path) == [{"id": "1"}, {"id": "3"}]


def test_two_processes_do_not_write_one_file(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    with pytest.raises(UserError, match="is being written by another process"):
        Log(tmp_path / "log.jsonl")
    log.close()
    Log(tmp_path / "log.jsonl").close()


def test_a_disk_that_refuses_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    log = Log(tmp_path / "log.jsonl")
    log.append({"id": "1"})

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(workshop.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            log.append({"id": "2"})
    log.append({"id": "3"})
    log.close()
    assert read_lines(tmp_path / "log.jsonl") == [{"id": "1"}, {"id": "3"}]


def test_paintings_are_found_in_every_kind_of_folder(tmp_path):
    def put(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(shade(100) if path.suffix != ".js" else b"//")

    put("run/paintings/step_0012_03.png", "run/sketches/step_0012_03.js")
    put("pool/images/love_a.png", "pool/sources/love_a.js", "plain/one.png", "plain/one.js", "plain/two.jpg")
    line = {"tier": "love", "file_name": "images/love_a.png", "source_file": "sources/love_a.js"}
    outside = {"tier": "okay", "file_name": "../plain/one.png"}
    (tmp_path / "pool/metadata.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(outside) + "\n")
    (run,) = items(tmp_path / "run")
    assert (run.name, run.source.name, run.meta) == ("step_0012_03", "step_0012_03.js", {"refinement_round": 12})
    (pool,) = items(tmp_path / "pool")
    assert (pool.name, pool.source.name, pool.meta["tier"]) == ("love_a", "love_a.js", "love")
    assert [(item.name, bool(item.source)) for item in items(tmp_path / "plain")] == [("one", True), ("two", False)]
    with pytest.raises(UserError, match="no paintings there"):
        items(tmp_path)


# ---- the server -------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(shade(100))
    log = Log(tmp_path / "ratings.jsonl")
    server = RatingServer([Item("a", path)], log)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    log.close()


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, None if body is None else json.dumps(body), named)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_a_rating_is_taken_from_the_page_and_a_second_time_counts_once(server):
    _, session = ask(server.server_port, "GET", "/session")
    token = json.loads(session)["token"]
    origin = f"http://127.0.0.1:{server.server_port}"
    for _ in range(2):
        assert ask(
            server.server_port, "POST", "/rate", rate("1", "a", "love"), X_Rating_Token=token, Origin=origin
        ) == (
            200,
            b'{"saved": true, "strengths": {}}',
        )
    (line,) = read_lines(server.log.path)
    assert (line["name"], line["rating"]) == ("a", "love")


@pytest.mark.parametrize(
    ("headers", "with_token"),
    [
        ({}, False),
        ({"X_Rating_Token": "guessed"}, False),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Host": "evil.example"}, True),
        ({"Host": "127.0.0.1:1"}, True),
    ],
)
def test_another_site_cannot_rate(server, headers, with_token):
    token = {"X_Rating_Token": server.token} if with_token else {}
    status, _ = ask(server.server_port, "POST", "/rate", rate("1", "a", "love"), **token, **headers)
    assert status == 403
    assert read_lines(server.log.path) == []


@pytest.mark.parametrize("path", ["/session", "/image/a", "/"])
def test_a_name_of_another_site_that_leads_here_shows_nothing(server, path):
    assert ask(server.server_port, "GET", path)[0] == 200
    assert ask(server.server_port, "GET", path, Host=f"evil.example:{server.server_port}")[0] == 403


def test_only_the_paintings_are_served(server):
    for path in ("/image/..%2fratings.jsonl", "/image/../ratings.jsonl", "/ratings.jsonl", "/source/a", "/rate.py"):
        assert ask(server.server_port, "GET", path)[0] == 404


def test_a_rating_that_the_disk_refused_is_not_counted(server, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(workshop.os, "fsync", full)
        status, content = ask(server.server_port, "POST", "/rate", rate("1", "a", "love"), X_Rating_Token=server.token)
    assert status == 507
    assert json.loads(content)["error"] == "ratings.jsonl cannot be written: No space left on device"
    assert server.ratings.by_name() == {}


def test_killed_at_any_moment_everything_that_was_said_to_be_saved_is_there(tmp_path):
    (tmp_path / "a.png").write_bytes(shade(100))
    command = [sys.executable, "-m", "reward.pool", "rate", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    port = int(re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())[1])
    token = json.loads(ask(port, "GET", "/session")[1])["token"]
    saved = []

    def rating(thread):
        for number in range(10000):
            key = f"{thread} {number}"
            try:
                status, _ = ask(port, "POST", "/rate", rate(key, "a", "love"), X_Rating_Token=token)
            except (OSError, http.client.HTTPException):
                return
            assert status == 200
            saved.append(key)

    threads = [threading.Thread(target=rating, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while len(saved) < 100:
        threads[0].join(0.01)
    os.kill(process.pid, signal.SIGKILL)
    for thread in threads:
        thread.join()
    process.wait()
    process.stderr.close()
    kept = [line["id"] for line in read_lines(tmp_path / "ratings.jsonl")]
    assert set(saved) <= set(kept)
    assert len(kept) == len(set(kept)) <= len(saved) + 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["."], "no paintings there"),
        ([".", "--port", "70000"], "no paintings"),
    ],
)
def test_a_mistake_is_one_line(arguments, told, tmp_path, monkeypatch, capsys):
    from reward.pool.__main__ import main

    monkeypatch.chdir(tmp_path)
    assert main(["rate", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_port_that_is_taken_is_one_line(server, tmp_path, capsys):
    from reward.pool.__main__ import main

    assert main(["rate", str(tmp_path), "--ratings", str(tmp_path / "r"), "--port", str(server.server_port)]) == 2
    assert f"error: port {server.server_port} of 127.0.0.1 is taken" in capsys.readouterr().err
