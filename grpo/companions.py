"""What accompanies a run and can neither stop nor delay it: the gallery kept fresh, trackio, uploads to the Hub.

Each works in a process of its own (grpo.background, grpo.tracking, grpo.publish.background), fails in one line, and is
waited for at the end for a bounded time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from grpo.background import Refresher
from grpo.config import Config
from grpo.publish.background import Publisher
from grpo.tracking import Tracker
from render.reading import flatten


class Companions:
    """A context manager. Raises ConfigError, before anything is loaded, for one that is asked for and not there."""

    def __init__(self, config: Config, folder: Path, say: Callable[[str], None]) -> None:
        self.folder, self.say = folder, say
        self.refresher = Refresher(folder, config.gallery.every, say)
        self.publisher = Publisher(folder, config.publish, say)
        self.tracker = Tracker(config.tracking, folder.name, flatten(config), say)

    def __enter__(self) -> Companions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait, for a bounded time, until what is there is there. A second call does nothing."""
        self.refresher.close()
        self.tracker.close()
        self.publisher.close()

    def step(self, metrics: dict[str, Any], sheet: Path) -> None:
        """A step is whole and on disk. Returns at once."""
        self.refresher.step_done(metrics["step"])
        self.publisher.step_done(metrics["step"])
        self.tracker.step(metrics, sheet)

    @property
    def where(self) -> str:
        """What a person can open, in a line; empty where the gallery is off."""
        if not self.refresher.every:
            return ""
        page = (self.folder / "gallery" / "index.html").resolve().as_uri()
        return f"gallery: {page}, or live: python -m grpo.watch {self.folder}"
