"""What is to be seen of a browser beside its driver: what it has lost, whether its page answers, how it crashed.

`Witness` is what a worker asks. `LocalWitness` looks at the processes of this machine; a browser on another one is its
own witness (see render.grid).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from render.devtools import CrashWatch, page_answers
from render.processes import alive, command_line, identify, stopped

# A page's process that ends itself after growing met the ceiling of V8's heap (512 MiB, see chromium.py). Samples lag
# behind a heap that fills in half a second, hence a mark far below the ceiling, yet above what a small painting needs:
# a page that ends below it has found no memory on the machine.
HEAP_GROWTH_MB = 64


class Witness(Protocol):
    def lost(self) -> tuple[str, str] | None:
        """What the browser has lost though its driver may not say so: a key of painting.CAUSES, and words."""

    def stopped(self) -> bool:
        """Whether a process of the browser is known to be stopped from outside."""

    def page_answers(self, seconds: float) -> bool:
        """Whether the page evaluates an expression within `seconds`: it waits for something, or has nothing to do."""

    def filled_heap(self, growth_mb: float, seconds: float) -> bool:
        """Whether a page has met the ceiling of JavaScript's heap since the last call.

        Waits for at most `seconds` for the news. growth_mb: MiB by which the browser was seen to grow in between.
        """


class LocalWitness:
    """pids: the browser's processes as they are now."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids
        found = pids()
        self._gpu = identify(pid for pid in found if b"--type=gpu-process" in command_line(pid))
        self._crashes = CrashWatch(found)

    def lost(self) -> tuple[str, str] | None:
        # The browser starts another one, but the canvas is lost and the page may wait for it for ever.
        return None if alive(self._gpu) else ("context_lost", "the browser's GPU process ended")

    def stopped(self) -> bool:
        return stopped(self._pids())

    def page_answers(self, seconds: float) -> bool:
        return page_answers(self._pids(), seconds)

    def filled_heap(self, growth_mb: float, seconds: float) -> bool:
        return growth_mb > HEAP_GROWTH_MB and self._crashes.ended_itself(seconds)
