"""Publishes a run while it goes on ([publish]), so that a dying machine loses nothing that is older than `every` steps.

    publisher = Publisher(folder, settings, say)     raises ConfigError where there is no token
    publisher.step_done(step)                        after each step; returns at once
    publisher.close()                                at the end: a last upload, for CLOSE_S at most

Each upload is `python -m grpo.publish` in a process of its own, one at a time, with the lowest claim to the CPU, that
ends when this one dies (grpo.background.Refresher). It tries again by itself; what it gives up is said in a line, once
for each kind of failure, and the next upload goes on from there. Nothing here stops or delays the run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from grpo.background import Refresher
from grpo.publish.settings import PublishSettings, lacking
from render.errors import ConfigError

CLOSE_S = 600.0  # that the last upload may take


class Publisher(Refresher):
    """say(line): tells a person something. command: what an upload runs."""

    def __init__(
        self,
        folder: Path,
        settings: PublishSettings,
        say: Callable[[str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        missing = lacking(settings)
        if missing:
            raise ConfigError(missing)
        self.by_hand = f"python -m grpo.publish {folder} --to {settings.to}"
        private = ("--private",) if settings.private else ()
        ours = (sys.executable, "-m", "grpo.publish", str(folder), "--to", settings.to, "--yes", *private)
        super().__init__(folder, settings.every, say, command or (*ours, "--parent", str(os.getpid())))
        self._claim = None  # that is the gallery's
        self.to = settings.to
        self._kinds: set[str] = set()
        self._last_failed = False

    def step_done(self, step: int) -> None:
        """A step is whole and on disk. Returns at once."""
        if not self.to:
            return
        with self._changed:
            self._behind = True  # also after an upload: the end has a last checkpoint and pictures of its own
            if self.every and step % self.every == 0:
                self._ask()

    def close(self, seconds: float = CLOSE_S) -> None:
        """The last upload, for at most `seconds`; what it leaves is said with the command that goes on. A second call
        does nothing."""
        if not self._behind:
            return
        self.say(f"publishing to {self.to}, for {seconds / 60:.0f} minutes at most; Ctrl-C leaves the rest for later")
        super().close(seconds)
        if self._last_failed:
            self.say(f"not all of the run is on the Hub; to go on: {self.by_hand}")

    def _refresh(self) -> None:
        self._last_failed = False
        super()._refresh()

    def _failed(self, why: str) -> None:
        self.failures += 1
        self._last_failed = True
        kind = re.sub(r"\d+", "", why)
        if kind not in self._kinds:
            self._kinds.add(kind)
            self.say(f"publishing: {why.removeprefix('error: ')}; the run goes on")
