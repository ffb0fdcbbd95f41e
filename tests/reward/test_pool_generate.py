"""Candidates from models: the road of a sketch, what is kept, what a failure means, and kill -9 in the middle of it."""

import base64
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from model_server import ModelServer, pictures, sketch, texts
from PIL import Image

from render.pixels import coverage
from reward.asking import FULL
from reward.pool.__main__ import main
from reward.pool.workshop import items, read_lines
from reward.settings import COMPOSITION

SUBJECT = "a red poppy in loose watercolour"


def painter(payload):
    """The writers' first sketch has a small disc, the revised one a larger; the critic has one sentence."""
    if payload["model"] == "critic":
        return "<think>hm</think>Let the disc grow."
    return sketch(radius=80 if "Let the disc grow." in texts(payload) else 40)


def arguments(server, folder, *more, writers=("writer",), subject=SUBJECT):
    named = [text for writer in writers for text in ("--writer", f"{writer}@{server.url}")]
    return ["generate", str(folder), *named, "--subject", subject, "--workers", "1", "--tries", "1", *more]


def critic(server, rounds=1):
    return ["--critic", f"critic@{server.url}", "--rounds", str(rounds)]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A writer, a critic, a revision, a photograph: the server's requests and the folder."""
    photos = tmp_path_factory.mktemp("photos")
    Image.new("RGB", (900, 600), (200, 30, 30)).save(photos / "poppy.jpg")
    line = {"file_name": "poppy.jpg", "licence": "cc-by-4.0", "attribution": "Ann", "url": "https://example.org/1"}
    (photos / "metadata.jsonl").write_text(json.dumps(line) + "\n")
    folder = tmp_path_factory.mktemp("workshop")
    with ModelServer(painter) as server:
        assert main(arguments(server, folder, *critic(server), "--photos", str(photos))) == 0
        yield server, folder


def test_the_writer_is_asked_as_the_policy_is_and_sees_the_photograph(workshop):
    server, _ = workshop
    first = server.asked("writer")[0]["messages"]
    assert first[0] == {"role": "system", "content": FULL + COMPOSITION}
    assert first[1]["content"][0] == {"type": "text", "text": f"Paint {SUBJECT}."}
    png = base64.b64decode(first[1]["content"][1]["image_url"]["url"].partition(",")[2])
    assert Image.open(io.BytesIO(png)).size == (512, 341)


def test_the_critic_sees_the_painting_and_the_writer_reads_what_it_said(workshop):
    server, _ = workshop
    (seen,) = server.asked("critic")
    assert pictures(seen) == 2
    assert SUBJECT in texts(seen)
    revised = server.asked("writer")[1]["messages"]
    assert "brush.circle(0, 0, 40)" in revised[2]["content"]
    assert "Let the disc grow." in revised[3]["content"]
    assert "hm" not in revised[3]["content"]


def test_each_candidate_is_kept_with_sketch_painting_and_where_it_came_from(workshop):
    _, folder = workshop
    first, second = items(folder)
    assert "brush.circle(0, 0, 40)" in first.source.read_text()
    assert "brush.circle(0, 0, 80)" in second.source.read_text()
    assert second.meta["paint_coverage"] == coverage(second.image.read_bytes()) > first.meta["paint_coverage"]
    assert (first.meta["refinement_round"], second.meta["refinement_round"]) == (0, 1)
    assert (second.meta["parent"], second.meta["feedback"]) == (first.name, "Let the disc grow.")
    assert (second.meta["generator_model"], second.meta["critic_model"]) == ("writer", "critic")
    photo = {key: value for key, value in second.meta.items() if key.startswith("reference_photo")}
    assert photo == {
        "reference_photo": "poppy.jpg",
        "reference_photo_licence": "cc-by-4.0",
        "reference_photo_attribution": "Ann",
        "reference_photo_url": "https://example.org/1",
    }


def test_a_sketch_that_breaks_a_rule_goes_back_with_the_rule_and_without_the_critic(tmp_path):
    def answer(payload):
        broken = "unknown_method" not in texts(payload)
        return sketch().replace("brush.circle(", "brush.sparkle(") if broken else sketch()

    with ModelServer(answer) as server:
        assert main(arguments(server, tmp_path, *critic(server))) == 0
        assert server.asked("critic") == []
    first, second = read_lines(tmp_path / "candidates.jsonl")
    assert first["outcome"] == "rejected"
    assert first["gate_errors"][0].startswith("unknown_method: ")
    assert second["outcome"] == "painted"
    assert second["feedback"] == first["gate_errors"][0]
    assert [item.name for item in items(tmp_path)] == [second["name"]]


def test_a_call_that_fails_is_a_cause_and_no_candidate_and_is_made_up_for_later(tmp_path, capsys):
    with ModelServer(painter) as server:
        server.fault = lambda request: "400" if request.payload["model"] == "other" and not first(request) else None
        command = arguments(server, tmp_path, writers=("writer", "other"))
        assert main(command) == 3
        assert "not done: 1 x 400: 400 Bad Request" in capsys.readouterr().err
        assert [record["generator_model"] for record in read_lines(tmp_path / "candidates.jsonl")] == ["writer"]
        server.fault = lambda request: None
        assert main(command) == 0
        assert len(server.asked("writer")) == 1
    assert len(items(tmp_path)) == 2


def first(request):
    return texts(request.payload).startswith("Answer with the word yes")


def test_the_number_of_calls_is_said_beforehand(workshop, tmp_path, capsys):
    with ModelServer(painter) as server:
        many = arguments(server, tmp_path, *critic(server, 3), "-n", "2", "--dry-run", writers=("one", "two"))
        assert main(many) == 0
        assert server.requests == []
    told = capsys.readouterr().err
    assert "sketches: 4, revisions of each: 3; at most 28 calls, of which 0 are done and 28 are left" in told


def test_what_is_done_is_counted_and_more_rounds_go_on_from_it(workshop, tmp_path, capsys):
    with ModelServer(painter) as server:
        assert main(arguments(server, tmp_path, *critic(server))) == 0
        before = len(server.requests)
        assert main([*arguments(server, tmp_path, *critic(server, 3)), "--dry-run"]) == 0
        assert main(arguments(server, tmp_path, *critic(server))) == 0
        assert len(server.requests) == before
    told = capsys.readouterr().err
    assert "at most 7 calls, of which 3 are done and 4 are left" in told
    assert "nothing is left to do" in told


def test_killed_in_the_middle_no_finished_call_is_asked_again_and_nothing_is_lost(tmp_path):
    places = itertools.count(-40)

    def elsewhere(payload):
        return painter(payload).replace("circle(0,", f"circle({next(places)},")

    with ModelServer(elsewhere, delay_s=0.15) as server:
        command = arguments(server, tmp_path, *critic(server), "-n", "4", "--concurrency", "3")
        killed = subprocess.Popen([sys.executable, "-m", "reward.pool", *command], stderr=subprocess.DEVNULL)
        calls, candidates = tmp_path / "calls.jsonl", tmp_path / "candidates.jsonl"
        limit = time.monotonic() + 30
        while not (candidates.exists() and candidates.read_bytes().count(b"\n") >= 2):
            assert time.monotonic() < limit
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        done, painted = len(read_lines(calls)), read_lines(candidates)
        assert 2 <= done < 12
        asked = len(server.asked("writer")) + len(server.asked("critic"))
        with calls.open("ab") as stream:
            stream.write(b'{"key": "cut sho')
        assert main(command) == 0
        assert len(server.asked("writer")) + len(server.asked("critic")) - asked == 12 - done
    names = [record["name"] for record in read_lines(candidates)]
    assert len(names) == len(set(names)) == 8
    assert read_lines(candidates)[: len(painted)] == painted
    assert len(read_lines(calls)) == 12


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--writer", "model"], "--writer model: a model and who serves it are needed"),
        (["--rounds", "2"], "--rounds 2 needs a --critic"),
        (["--critic", "critic@http://127.0.0.1:9/v1", "--rounds", "0"], "--critic has no effect with --rounds 0"),
        (["--price", "nobody=1:2"], "--price nobody: no --writer and no --critic has that name"),
        (["--price", "writer=1"], "--price writer=1: MODEL=IN:OUT is needed"),
        (["--concurrency", "0"], "concurrency"),
        (["--system", "/nowhere/prompt.txt"], '--system: "full", "short" or a text file'),
        (["--photos", "/nowhere"], "/nowhere: no metadata.jsonl there"),
        (["--writer", "other@novita"], "the writer needs a token of Hugging Face"),
    ],
)
def test_a_mistake_is_one_line_and_asks_nothing(more, told, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with ModelServer(painter) as server:
        assert main([*arguments(server, tmp_path), *more]) == 2
        assert server.requests == []
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert told in line


def test_a_photograph_without_attribution_is_refused(tmp_path, capsys):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    line = {"file_name": "a.png", "licence": "cc0", "url": "https://example.org"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line) + "\n")
    with ModelServer(painter) as server:
        assert main(arguments(server, tmp_path / "w", "--photos", str(tmp_path))) == 2
    assert "photograph 1: attribution must be a text, not None" in capsys.readouterr().err


def test_a_model_that_refuses_the_token_is_one_line_before_anything_is_painted(tmp_path, capsys):
    with ModelServer(painter, fault=lambda request: "401") as server:
        assert main(arguments(server, tmp_path)) == 2
    assert "error: the writer writer at http://127.0.0.1" in capsys.readouterr().err
    assert read_lines(tmp_path / "candidates.jsonl") == []


def test_thinking_is_switched_off_on_request_and_a_key_is_sent_to_a_server_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    with ModelServer(painter) as server:
        assert main(arguments(server, tmp_path, "--no-thinking", "--key-variable", "MY_KEY")) == 0
        (payload,) = server.asked("writer")
        assert payload["chat_template_kwargs"] == {"enable_thinking": False}
        assert (payload["max_tokens"], payload["temperature"]) == (8192, 1.0)
        headers = [{name.lower(): value for name, value in request.headers.items()} for request in server.requests]
        assert {sent["authorization"] for sent in headers} == {"Bearer secret"}
    assert "secret" not in "".join(path.read_text() for path in tmp_path.glob("*.jsonl"))
