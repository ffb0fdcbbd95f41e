"""Keeps RUN/gallery fresh while a run goes on, in a process of its own that waits for everybody else.

    refresher = Refresher(folder, settings.every, say)
    refresher.step_done(step)      after each step: asks for a refresh, and returns at once
    refresher.close()              at the end: the gallery is brought up to date once more

One refresh at a time; what is asked for meanwhile is one more refresh afterwards. The process has the lowest claim to
the CPU, a session of its own (Ctrl-C in the terminal does not reach it), and ends when this one dies. A refresh that
fails is said in one line, once; the run goes on.

While it is open, RUN/refresh.lock is held, so that `python -m grpo.watch` knows that a run does this by itself.

    python -m grpo.background RUN PARENT      the process: one refresh for the process PARENT
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from render.disk import lock_at_once
from render.errors import exit_code
from render.processes import die_with_parent
from render.settings import setting

LOCK = "refresh.lock"
NICENESS = 10
CLOSE_S = 60.0  # that the last refresh may take


@dataclass(frozen=True)
class GallerySettings:
    """Table [gallery]: how often a run brings RUN/gallery up to date."""

    every: int = setting(1, doc="steps between two refreshes of RUN/gallery, in the background; 0 = off", ge=0)


class Claim:
    """RUN/refresh.lock: whoever holds it brings RUN/gallery up to date. The kernel lifts it when its holder ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self._handle: IO[str] | None = None

    def take(self) -> bool:
        """Whether it is held now. Never waits."""
        if self._handle is None:
            try:
                handle = self.path.open("a")
            except OSError:
                return False
            if not lock_at_once(handle):
                handle.close()
                return False
            self._handle = handle
        return True

    def release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()


class Refresher:
    """every: steps between two refreshes; 0 = this does nothing at all. say(line): tells a person something.

    command: what a refresh runs.
    """

    def __init__(
        self,
        folder: Path,
        every: int,
        say: Callable[[str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        self.folder = folder
        self.every = every
        self.say = say
        self.command = list(command or (sys.executable, "-m", "grpo.background", str(folder), str(os.getpid())))
        self.refreshes = 0
        self.failures = 0
        self._changed = threading.Condition()
        self._wanted = self._closing = False
        self._behind = False  # a step was done since the last request
        self._claim: Claim | None = Claim(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def step_done(self, step: int) -> None:
        """A step is whole and on disk. Returns at once."""
        if not self.every:
            return
        with self._changed:
            self._behind = step % self.every != 0
            if self._behind:
                return
            self._ask()

    def close(self, seconds: float = CLOSE_S) -> None:
        """Let the last refresh end, at most `seconds`; after that it is ended. A second call does nothing."""
        with self._changed:
            if self._behind:
                self._ask()
            self._behind, self._closing = False, True
            self._changed.notify()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            thread.join(seconds)
        finally:  # also when Ctrl-C ends the waiting
            if thread.is_alive():
                with self._changed:
                    self._wanted = False
                self._kill()
                thread.join(5.0)
                self._failed(f"it took more than {seconds:.0f} s")

    def _ask(self) -> None:
        self._wanted = True
        self._changed.notify()
        if self._thread is None:
            # The process dies with the thread that has started it (PR_SET_PDEATHSIG): the thread stays to the end.
            self._thread = threading.Thread(target=self._work, name="gallery", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted or self._closing)
                if not self._wanted:
                    break
                self._wanted = False
            if self._claim is not None:
                self._claim.take()
            self._refresh()
        if self._claim is not None:
            self._claim.release()

    def _refresh(self) -> None:
        try:
            with tempfile.TemporaryFile() as words:
                # No preexec_fn: with one, the memory map of a process that holds a model is copied.
                self._process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=words,
                    start_new_session=True,
                )
                code = self._process.wait()
                self.refreshes += 1
                words.seek(0)
                lines = words.read().decode(errors="replace").strip().splitlines()
        except OSError as error:
            code, lines = 1, [str(error)]
        with self._changed:
            ended = self._closing and code == -signal.SIGKILL  # close() says so itself
        if code and not ended:
            self._failed(lines[-1] if lines else f"exit code {code}")

    def _failed(self, why: str) -> None:
        self.failures += 1
        if self.failures == 1:
            self.say(f"the gallery could not be refreshed ({why.removeprefix('error: ')}); the run goes on without it")

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main(argv: Sequence[str]) -> int:
    """One refresh. argv: the run folder, and the pid of the process that it is for."""
    folder, parent = Path(argv[0]), int(argv[1])
    die_with_parent(parent)
    os.nice(NICENESS)
    from grpo.gallery import build

    build([folder], folder / "gallery")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:]), ""))
