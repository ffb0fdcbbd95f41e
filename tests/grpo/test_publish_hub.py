"""Publishing to a stand-in for the Hub: what arrives, what is never sent twice, and every way in which it fails."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from hub_server import TOKEN, HubStandIn
from publish_kit import NAME, checkpoint, mixed_step, plain_step, start

from grpo.publish import __main__ as publish
from grpo.publish import hub as hub_module
from grpo.publish.files import collect

ROOT = Path(__file__).parents[2]
DATASET = f"{NAME}-rollouts"
LARGE = r"PUT /lfs/"
COMMIT = r"POST /api/\w+/.*/commit/"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A stand-in that this process and those that it starts take for the Hub; waiting takes no time."""
    with HubStandIn() as stand_in:
        monkeypatch.setenv("HF_ENDPOINT", stand_in.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        yield stand_in
        huggingface_hub.close_session()


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were to be waited between tries; none is."""
    seconds: list[float] = []
    monkeypatch.setattr(hub_module.time, "sleep", seconds.append)
    return seconds


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = start(tmp_path / "run")
    plain_step(folder, 1)
    mixed_step(folder, 2)
    return folder


def put(run: Path, *extra: str) -> int:
    return publish.main([str(run), "--to", NAME, "--yes", *extra])


def sent(run: Path) -> dict[str, dict[str, bytes]]:
    """What has to be there, by repository and path."""
    publication = collect(run, NAME, None, keep=False)
    return {
        one.name: {
            item.path: item.content if isinstance(item.content, bytes) else item.content.read_bytes()
            for item in one.items
        }
        for one in (publication.model, publication.dataset)
    }


def assert_all_there(hub: HubStandIn, run: Path) -> None:
    wanted = sent(run)
    for kind, name in (("model", NAME), ("dataset", DATASET)):
        there = {path: content for path, content in hub.files(kind, name).items() if path != ".gitattributes"}
        assert there == wanted[name]


# --- what arrives ---------------------------------------------------------------------------------------------------


def test_what_arrives_is_what_was_there_byte_by_byte(hub: HubStandIn, run: Path) -> None:
    assert put(run, "--private") == 0
    assert_all_there(hub, run)
    assert [repository.private for repository in hub.repositories.values()] == [True, True]
    paintings = {path.name: path.read_bytes() for path in (run / "paintings").iterdir()}
    files = hub.files("dataset", DATASET)
    assert {Path(path).name: content for path, content in files.items() if path.endswith(".png")} == paintings
    assert hub.files("model", NAME)["adapter_model.safetensors"] == b"weights of step 0\0" * 40


def test_without_private_what_is_new_is_public(hub: HubStandIn, run: Path) -> None:
    assert put(run) == 0
    assert [repository.private for repository in hub.repositories.values()] == [False, False]


def test_a_second_time_nothing_is_sent(hub: HubStandIn, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(run)
    before = hub.count(LARGE), hub.count("POST")
    assert put(run) == 0
    assert (hub.count(LARGE), hub.count("POST")) == before
    assert "everything is there already" in capsys.readouterr().out


def test_after_more_steps_only_what_is_new_is_sent(hub: HubStandIn, run: Path) -> None:
    put(run)
    before = hub.count(LARGE)
    plain_step(run, 3, count=3)
    checkpoint(run, 3)
    assert put(run) == 0
    assert hub.count(LARGE) - before == 3 + 1  # paintings of the step, weights of the adapter
    assert_all_there(hub, run)


def test_a_step_is_never_cut_between_two_commits(hub: HubStandIn, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "FILES", 6)
    put(run)
    assert hub.repositories["dataset", DATASET].commits == [
        "6 files, part 1 of 2",  # run.json, step 1 with its rows and four paintings
        "6 files, part 2 of 2",  # step 2 with its rows and two paintings, then card, config and curves
    ]


def test_a_painting_that_a_resumed_run_no_longer_has_is_removed(hub: HubStandIn, run: Path) -> None:
    put(run)
    (run / "paintings" / "step_0002_02.png").unlink()
    hub.files("dataset", DATASET)["notes.md"] = b"by hand"
    assert put(run) == 0
    files = hub.files("dataset", DATASET)
    assert "rollouts/step_0002/step_0002_02.png" not in files
    assert files["notes.md"] == b"by hand"


def test_another_run_is_not_overwritten_unless_asked(
    hub: HubStandIn, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(run)
    other = start(tmp_path / "other")
    plain_step(other, 1, count=2)
    capsys.readouterr()
    before = dict(hub.files("dataset", DATASET))
    assert put(other) == 2
    assert capsys.readouterr().err == (
        "error: ada/hibiscus: this model holds another run; take another name, or --replace it\n"
    )
    assert hub.files("dataset", DATASET) == before
    assert put(other, "--replace") == 0
    assert_all_there(hub, other)


# --- what a person is asked -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "there"), [(b"n\n", 0), (b"y\n", 2), (b"\x04", 0)])
def test_somebody_at_a_terminal_is_asked_first(hub: HubStandIn, run: Path, answer: bytes, there: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    line = [sys.executable, "-m", "grpo.publish", str(run), "--to", NAME]
    done = subprocess.run(line, cwd=ROOT, stdin=theirs, capture_output=True, text=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("to send: 9 files") < done.stdout.index("send it? [y/N]")
    assert len(hub.repositories) == there


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("break_it", "name", "line"),
    [
        (lambda hub, patch: patch.setenv("HF_TOKEN", "hf_wrong"), NAME, "the Hub does not know the token (401)"),
        (lambda hub, patch: None, "eve/hibiscus", "eve/hibiscus: the token has no right to write there (403)"),
        (lambda hub, patch: hub.fail("commit", 403), NAME, "ada/hibiscus: the token has no right to write there (403)"),
        (lambda hub, patch: hub.fail("commit", 413), NAME, "ada/hibiscus: the Hub refuses it (413)"),
        (lambda hub, patch: hub.fail("validate-yaml", 400), NAME, "ada/hibiscus: the Hub refuses it: Invalid metadata"),
    ],
)
def test_what_no_second_try_would_mend_ends_in_a_line(
    hub: HubStandIn,
    run: Path,
    waited: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    break_it: Callable[[HubStandIn, pytest.MonkeyPatch], None],
    name: str,
    line: str,
) -> None:
    break_it(hub, monkeypatch)
    assert publish.main([str(run), "--to", name, "--yes"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {line}")
    assert said.count("\n") == 1
    assert waited == []


def test_without_a_token_it_says_how_to_get_one(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nowhere")
    assert put(run) == 2
    assert capsys.readouterr().err.startswith("error: no token for the Hub: make one with write access at https://")


def test_it_waits_as_long_as_the_hub_asks_and_says_so(
    hub: HubStandIn, run: Path, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    hub.fail(COMMIT, 429, times=2, Retry_After="7")
    hub.fail("preupload", 429, Retry_After="11")  # the library's own waiting
    assert put(run) == 0
    assert sorted(waited) == [7.0, 7.0, 12.0]
    said = capsys.readouterr().out
    assert said.count("ada/hibiscus: the Hub wants fewer requests (429); waiting 7 s\n") == 2
    assert "the Hub: HTTP Error 429. Rate limited. Waiting 12.0s before retry [Retry 1/5].\n" in said
    assert_all_there(hub, run)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda hub: hub.fail(LARGE, 500, times=3),
        lambda hub: hub.fail(COMMIT, 502, times=2),
        lambda hub: hub.cut(LARGE, times=3),
        lambda hub: hub.cut(COMMIT),
        lambda hub: hub.cut("repos/create"),
        lambda hub: hub.fail("verify", 503),
        lambda hub: hub.fail("tree", 500),
    ],
)
def test_what_breaks_on_the_way_is_sent_again(
    hub: HubStandIn, run: Path, waited: list[float], break_it: Callable[[HubStandIn], None]
) -> None:
    break_it(hub)
    assert put(run) == 0
    assert_all_there(hub, run)
    assert waited


def test_what_stays_broken_ends_in_a_line_and_goes_on_later(
    hub: HubStandIn, run: Path, waited: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    hub.fail("datasets/.*/commit", 500, times=100)
    assert put(run) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: ada/hibiscus-rollouts: the Hub answered 500 (told to answer 500), 5 times; nothing")
    assert said.count("\n") == 1
    assert waited == list(hub_module.PAUSES_S)
    hub.faults.clear()
    before = hub.count(LARGE)
    assert put(run) == 0
    assert hub.count(LARGE) == before  # the large files were there; only the commit was missing
    assert_all_there(hub, run)


def test_a_hub_out_of_reach_ends_in_a_line(
    run: Path, waited: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with HubStandIn() as gone:
        monkeypatch.setenv("HF_ENDPOINT", gone.url)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert put(run) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: ada/hibiscus: the connection to the Hub broke (")
    assert said.count("\n") == 1


def test_two_do_not_publish_one_run_at_a_time(hub: HubStandIn, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with publish.alone(run):
        assert put(run) == 2
    assert "is being published already" in capsys.readouterr().err
    assert put(run) == 0


# --- killed ---------------------------------------------------------------------------------------------------------


def test_killed_in_the_middle_it_goes_on_where_it_was(hub: HubStandIn, run: Path) -> None:
    for step in range(3, 9):
        plain_step(run, step)
    hub.slow_s = 0.15
    line = [sys.executable, "-m", "grpo.publish", str(run), "--to", NAME, "--yes"]
    for stop in (6, 14, 22):  # large files that are there, of 30: before, within and after commits of steps
        process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        limit = time.monotonic() + 60
        while len(hub.objects) < stop:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(2 * hub.slow_s)  # what is on its way arrives or breaks
    hub.slow_s = 0.0
    there = set(hub.objects)
    before = len(hub.requests)
    subprocess.run(line, cwd=ROOT, check=True, capture_output=True, timeout=60)
    assert_all_there(hub, run)
    again = {request.removeprefix("PUT /lfs/") for request in hub.requests[before:] if request.startswith("PUT")}
    assert again.isdisjoint(there)
    puts = Counter(request for request in hub.requests if request.startswith("PUT"))
    # At most what was on its way at a kill was sent twice.
    assert sum(puts.values()) - len(puts) <= 3 * hub_module.THREADS


# --- the adapter ----------------------------------------------------------------------------------------------------


def test_the_published_adapter_is_loaded_by_the_lines_of_its_card(
    hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from parts import byte_tokenizer, tiny_model
    from peft import AutoPeftModel

    from grpo import checkpoint as checkpoints
    from grpo import small
    from grpo.adapter import Origin
    from grpo.config import LoraSettings
    from grpo.policy import Policy

    run = start(tmp_path / "run", "policy.model=small")
    plain_step(run, 1)
    tokenizer = byte_tokenizer()
    model = tiny_model(tokenizer)
    small.save(run / "base", model, tokenizer)
    place = (run / "base").resolve()
    origin = Origin(model=str(place / "model"), tokenizer=str(place / "tokenizer"))
    policy = Policy(model, tokenizer, LoraSettings(rank=4, alpha=8), origin=origin)
    for weight in policy.trainable().values():
        torch.nn.init.normal_(weight, std=0.1)
    optimizer = torch.optim.AdamW(policy.trainable().values())
    checkpoints.save(run / "checkpoints", 1, policy, optimizer, {"base": "none"})
    assert put(run) == 0

    hub.save("model", NAME, tmp_path / "fetched")
    run.rename(tmp_path / "gone")  # nothing may be read from where it was trained
    monkeypatch.chdir(tmp_path / "fetched")
    card = Path("README.md").read_text()
    lines = card.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(lines, names)
    ids = torch.tensor([names["tokenizer"].encode("Paint 12 flowers.")])
    with torch.no_grad():
        wanted = policy.model.eval()(input_ids=ids).logits
        assert torch.equal(names["model"].eval()(input_ids=ids).logits, wanted)
        assert torch.equal(AutoPeftModel.from_pretrained(".").eval()(input_ids=ids).logits, wanted)
        with names["model"].disable_adapter():
            assert not torch.equal(names["model"](input_ids=ids).logits, wanted)
