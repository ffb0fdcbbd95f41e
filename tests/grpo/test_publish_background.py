"""A run that goes to a stand-in for the Hub while it goes on: it loses nothing, waits for nothing, says little."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, HubStandIn
from publish_kit import NAME, checkpoint, plain_step, start

from grpo.publish.background import Publisher
from grpo.publish.settings import PublishSettings
from render.errors import ConfigError

ROOT = Path(__file__).parents[2]
DATASET = f"{NAME}-rollouts"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    with HubStandIn() as stand_in:
        monkeypatch.setenv("HF_ENDPOINT", stand_in.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        yield stand_in


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = start(tmp_path / "run")
    plain_step(folder, 1)
    return folder


def wait_until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


def steps(hub: HubStandIn) -> set[str]:
    repository = hub.repositories.get(("dataset", DATASET))
    paths = list(repository.files) if repository else []
    return {path.split("/")[1] for path in paths if path.startswith("rollouts/")}


def test_what_is_done_is_up_while_the_run_goes_on_and_all_of_it_at_the_end(hub: HubStandIn, run: Path) -> None:
    said: list[str] = []
    publisher = Publisher(run, PublishSettings(to=NAME, every=1), said.append)
    publisher.step_done(1)
    wait_until(lambda: steps(hub) == {"step_0001"})
    plain_step(run, 2)
    checkpoint(run, 2)
    publisher.step_done(2)
    publisher.close()
    assert steps(hub) == {"step_0001", "step_0002"}
    assert hub.files("model", NAME)["adapter_model.safetensors"] == b"weights of step 2\0" * 40
    assert [repository.private for repository in hub.repositories.values()] == [True, True]
    assert said == [f"publishing to {NAME}, for 10 minutes at most; Ctrl-C leaves the rest for later"]


def test_without_every_it_goes_up_once_at_the_end(hub: HubStandIn, run: Path) -> None:
    publisher = Publisher(run, PublishSettings(to=NAME, private=False), lambda line: None)
    publisher.step_done(1)
    plain_step(run, 2)
    publisher.step_done(2)
    assert publisher.refreshes == 0
    publisher.close()
    assert publisher.refreshes == 1
    assert steps(hub) == {"step_0001", "step_0002"}
    assert [repository.private for repository in hub.repositories.values()] == [False, False]


def test_without_a_name_nothing_is_started(run: Path) -> None:
    publisher = Publisher(run, PublishSettings(), lambda line: None, ["/no/such/program"])
    publisher.step_done(1)
    publisher.close()
    assert (publisher.refreshes, publisher.failures) == (0, 0)


def test_a_missing_token_is_an_error_before_training(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nowhere")
    with pytest.raises(ConfigError, match=r'\[publish\] to = "ada/hibiscus": no token'):
        Publisher(run, PublishSettings(to=NAME), lambda line: None)


def test_each_kind_of_failure_is_said_once_and_the_end_says_how_to_go_on(run: Path, hub: HubStandIn) -> None:
    said: list[str] = []
    code = f"""import pathlib, sys
log = pathlib.Path({str(run / "log")!r})
n = len(log.read_text()) if log.exists() else 0
log.write_text("." * (n + 1))
sys.exit(f"error: the Hub answered 500 after {{n}} files" if n < 2 else "error: another thing")"""
    publisher = Publisher(run, PublishSettings(to=NAME, every=1), said.append, [sys.executable, "-c", code])
    for step in range(1, 4):
        publisher.step_done(step)
        wait_until(lambda step=step: publisher.failures == step)  # type: ignore[misc]
    publisher.close()
    assert said == [
        "publishing: the Hub answered 500 after 0 files; the run goes on",
        "publishing: another thing; the run goes on",
        f"publishing to {NAME}, for 10 minutes at most; Ctrl-C leaves the rest for later",
        f"not all of the run is on the Hub; to go on: python -m grpo.publish {run} --to {NAME}",
    ]


def test_a_hub_that_hangs_holds_up_neither_a_step_nor_the_end(hub: HubStandIn, run: Path) -> None:
    hub.slow_s = 600.0
    said: list[str] = []
    publisher = Publisher(run, PublishSettings(to=NAME, every=1), said.append)
    began = time.monotonic()
    publisher.step_done(1)
    assert time.monotonic() - began < 0.2
    wait_until(lambda: hub.count("PUT"))
    began = time.monotonic()
    publisher.close(seconds=0.3)
    assert time.monotonic() - began < 5
    assert said[1:] == [
        "publishing: it took more than 0 s; the run goes on",
        f"not all of the run is on the Hub; to go on: python -m grpo.publish {run} --to {NAME}",
    ]


def test_an_upload_does_not_outlive_its_run(hub: HubStandIn, run: Path) -> None:
    line = [sys.executable, "-m", "grpo.publish", str(run), "--to", NAME, "--yes", "--parent", str(os.getppid())]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, timeout=60)  # its parent is another one: gone
    assert done.returncode == 0
    assert hub.requests == []
