"""Tracking against stand-ins for trackio, each a module of that name: one that works, one that raises, one that hangs,
one that meddles. The run must never wait for any of them, and must be told once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from grpo.tracking import QUEUE, Tracker, TrackingSettings
from render.errors import ConfigError
from render.reading import read_table

WORKS = """
import json, os
LOG = os.environ["STAND_IN_LOG"]
def note(*words):
    with open(LOG, "a") as stream:
        stream.write(json.dumps(words) + "\\n")
class Image:
    def __init__(self, value): self.value = value
def init(**settings): note("init", settings)
def log(values, step=None):
    note("log", step, {key: value.value if isinstance(value, Image) else value for key, value in values.items()})
def finish(): note("finish")
"""
LOG = "def log(values, step=None):"
RAISES = WORKS.replace(LOG, f"{LOG}\n    raise OSError('no space\\nleft')")
RAISES_AT_START = "def init(**settings): raise RuntimeError('no account')"
HANGS = WORKS.replace(LOG, f"import time\n{LOG}\n    time.sleep(600)")
HANGS_AT_START = "import time\ntime.sleep(600)"
ENDS = WORKS.replace(LOG, f"{LOG}\n    os._exit(3)")
MEDDLES = WORKS.replace(
    "def init(**settings):",
    "import atexit, threading, time\natexit.register(time.sleep, 600)\n"
    "threading.Thread(target=time.sleep, args=(600,)).start()\nprint('* Trackio project initialized')\n"
    "def init(**settings):",
)
ON = TrackingSettings(trackio="painting")


class StandIn:
    """A folder with a module `trackio` in it, on the path of this process and of its children."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.log = folder, folder / "log"
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder))
        patch.setenv("STAND_IN_LOG", str(self.log))
        self.said: list[str] = []

    def is_to(self, text: str) -> None:
        (self.folder / "trackio.py").write_text(text)

    def calls(self) -> list[list[Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch)


def test_steps_arrive_with_their_sheets(trackio: StandIn, tmp_path: Path) -> None:
    trackio.is_to(WORKS)
    settings = TrackingSettings(trackio="painting", space="me/space")
    tracker = Tracker(settings, "laptop", {"run": {"seed": 0}}, trackio.said.append)
    row = {"step": 3, "reward": 0.5, "kl": None, "references": "a b", "bad": float("nan"), "updates": 1}
    tracker.step(row, tmp_path / "sheet.png")
    tracker.step({"step": 4, "reward": 0.25})
    tracker.close()
    start = {"project": "painting", "name": "laptop", "config": {"run": {"seed": 0}}, "resume": "allow"}
    assert trackio.calls() == [
        ["init", {**start, "space_id": "me/space"}],
        ["log", 3, {"reward": 0.5, "updates": 1, "contact sheet": str(tmp_path / "sheet.png")}],
        ["log", 4, {"reward": 0.25}],
        ["finish"],
    ]
    assert tracker.counts == {"sent": 2, "failed": 0, "dropped": 0}
    assert trackio.said == []


def test_off_starts_nothing(trackio: StandIn) -> None:
    trackio.is_to("raise SystemExit('imported')")
    tracker = Tracker(TrackingSettings(), "laptop", {}, trackio.said.append)
    tracker.step({"step": 1, "reward": 0.5})
    tracker.close()
    assert (tracker.counts, trackio.said) == ({"sent": 0, "failed": 0, "dropped": 0}, [])


def test_a_trackio_that_is_not_installed_ends_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'\[tracking\] trackio = "painting".*pip install trackio'):
        Tracker(ON, "laptop", {}, print)


@pytest.mark.parametrize(
    ("text", "counts", "word"),
    [
        (RAISES, {"sent": 0, "failed": 3, "dropped": 0}, "OSError: no space"),
        (RAISES_AT_START, {"sent": 0, "failed": 0, "dropped": 3}, "RuntimeError: no account"),
        ("import nothing_of_the_kind", {"sent": 0, "failed": 0, "dropped": 3}, "ModuleNotFoundError"),
        (ENDS, {"sent": 0, "failed": 1, "dropped": 2}, "its process has ended"),
        (HANGS, {"sent": 0, "failed": 1, "dropped": 2}, "no answer within 2 s"),
        (HANGS_AT_START, {"sent": 0, "failed": 0, "dropped": 3}, "no answer within 2 s"),
    ],
)
def test_what_fails_is_counted_and_said_once(trackio: StandIn, text: str, counts: dict[str, int], word: str) -> None:
    trackio.is_to(text)
    tracker = Tracker(ON, "laptop", {}, trackio.said.append, answer_s=2)
    for step in (1, 2, 3):
        tracker.step({"step": step, "reward": 0.5})
    tracker.close()
    assert tracker.counts == counts
    assert len(trackio.said) == 1
    assert word in trackio.said[0]
    assert "\n" not in trackio.said[0]


def test_the_run_never_waits_for_a_trackio_that_hangs(trackio: StandIn) -> None:
    trackio.is_to(HANGS)
    tracker = Tracker(ON, "laptop", {}, trackio.said.append)
    began = time.monotonic()
    steps = 5 * QUEUE
    for step in range(steps):
        tracker.step({"step": step, "reward": 0.5})
    assert time.monotonic() - began < 1
    tracker.close(0.5)
    assert time.monotonic() - began < 8
    assert tracker.counts["sent"] == 0
    assert sum(tracker.counts.values()) == steps
    assert len(trackio.said) == 1


def test_what_trackio_leaves_behind_does_not_keep_the_run_from_ending(trackio: StandIn) -> None:
    """An exit hook and a thread that sleep, and a line on standard output."""
    trackio.is_to(MEDDLES)
    program = (
        "from grpo.tracking import Tracker, TrackingSettings\n"
        "tracker = Tracker(TrackingSettings(trackio='painting'), 'laptop', {}, print)\n"
        "tracker.step({'step': 1, 'reward': 0.5})\n"
        "tracker.close()\n"
        "print(tracker.counts['sent'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "1\n"
    assert trackio.calls()[-1] == ["finish"]


def test_the_table_of_settings() -> None:
    read = read_table(TrackingSettings, {"trackio": "painting"}, "a.toml", "tracking")
    assert read == ON
    with pytest.raises(ConfigError, match="space has no effect"):
        TrackingSettings(space="me/space").validate()
