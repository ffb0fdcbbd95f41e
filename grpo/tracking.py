"""A run's metrics and contact sheets in trackio, for those who ask for it ([tracking] trackio = "PROJECT").

    tracker = Tracker(settings, name, config, say)     raises ConfigError where trackio is not installed
    tracker.step(metrics, sheet)                       after each step; returns at once
    tracker.close()                                    at the end; waits a little for what is still to be sent

trackio works in a process of its own (`python -m grpo.tracking PARENT`), because it prints, hooks itself into the end
of the program and may hang: none of that can reach the run. A thread hands it one step at a time from a queue of QUEUE
steps, and waits for its answer. What fails, and what finds no room in the queue, is dropped and counted; a person is
told once. A trackio that does not answer within ANSWER_S is ended, and the run goes on without it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from render.errors import ConfigError
from render.processes import die_with_parent
from render.settings import setting

QUEUE = 32
ANSWER_S = 60.0
CLOSE_S = 20.0
Message = dict[str, Any]


@dataclass(frozen=True)
class TrackingSettings:
    """Table [tracking]: metrics and contact sheets in trackio (pip install trackio)."""

    trackio: str = setting("", doc="name of the trackio project; empty = off")
    space: str = setting("", doc='Space of the Hub that shows it ("org/name"); empty = this machine alone')

    def validate(self) -> None:
        """ConfigError where a Space is named for no project."""
        if self.space and not self.trackio:
            raise ConfigError("[tracking] space has no effect without trackio; name the project")


def absent(settings: TrackingSettings) -> str:
    """What this machine lacks for [tracking], in a line; empty = nothing."""
    if not settings.trackio or importlib.util.find_spec("trackio") is not None:
        return ""
    return f'[tracking] trackio = "{settings.trackio}", but trackio is not installed: pip install trackio'


class Tracker:
    """name: of the run. config: its settings, as JSON can hold them. say(line): tells a person something.

    counts: steps by what became of them: sent, failed, dropped.
    """

    def __init__(
        self,
        settings: TrackingSettings,
        name: str,
        config: Mapping[str, Any],
        say: Callable[[str], None],
        *,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.say, self.answer_s = say, answer_s
        self.counts = {"sent": 0, "failed": 0, "dropped": 0}
        self._queue: queue.Queue[Message | None] = queue.Queue(QUEUE)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._warned = False
        self._lock = threading.Lock()
        if not settings.trackio:
            return
        if absent(settings):
            raise ConfigError(absent(settings))
        start = {"project": settings.trackio, "name": name, "config": dict(config), "resume": "allow"}
        if settings.space:
            start["space_id"] = settings.space
        self._thread = threading.Thread(target=self._work, args=(start,), name="trackio", daemon=True)
        self._thread.start()

    def step(self, metrics: Mapping[str, Any], sheet: Path | None = None) -> None:
        """Hand over a step's numbers and the path of its contact sheet. Never waits."""
        if self._thread is None:
            return
        numbers = {key: value for key, value in metrics.items() if _is_number(value) and key != "step"}
        message = {"step": metrics.get("step"), "metrics": numbers, "sheet": str(sheet) if sheet is not None else None}
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self._lost("dropped", "it is too slow")

    def close(self, seconds: float = CLOSE_S) -> None:
        """Let what is queued be sent, for at most `seconds`; then end it. A second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        until = time.monotonic() + seconds
        try:
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=seconds)
            thread.join(max(0.0, until - time.monotonic()))
        finally:  # also when Ctrl-C ends the waiting
            if thread.is_alive():
                self._kill()
                with contextlib.suppress(queue.Empty):
                    while self._queue.get_nowait() is not None:
                        self._lost("dropped", "it is too slow")
                self._queue.put(None)
                thread.join(5.0)

    def _work(self, start: Message) -> None:
        try:
            alive = self._begin(start)
        except _Gone as gone:
            alive = False
            self._warn(str(gone))
        while (message := self._queue.get()) is not None:
            if not alive:
                self._lost("dropped", "it has ended")
                continue
            try:
                error = self._ask(message)
            except _Gone as gone:
                alive, error = False, str(gone)
            if error:
                self._lost("failed", error)
            else:
                with self._lock:
                    self.counts["sent"] += 1
        if alive:
            try:
                error = self._ask({"finish": True})
            except _Gone as gone:
                error = str(gone)
            if error:
                self._warn(error)
        self._kill()

    def _begin(self, start: Message) -> bool:
        """Start the process and trackio in it; whether both are there. Raises _Gone."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "grpo.tracking", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as raised:
            raise _Gone(str(raised)) from raised
        error = self._ask({"start": start})
        if error:
            self._warn(error)
            self._kill()
        return not error

    def _ask(self, message: Message) -> str:
        """What went wrong at trackio; empty = nothing. Raises _Gone, the process ended, where no answer comes."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            line = _line_within(process.stdout, self.answer_s)
        except (OSError, ValueError):  # it has closed its side
            line = b""
        if line:
            return str(json.loads(line)["error"])
        self._kill()
        raise _Gone(f"no answer within {self.answer_s:g} s" if line is None else "its process has ended")

    def _lost(self, kind: str, why: str) -> None:
        with self._lock:
            self.counts[kind] += 1
        self._warn(why)

    def _warn(self, why: str) -> None:
        """Once."""
        with self._lock:
            warned, self._warned = self._warned, True
        if not warned:
            self.say(f"trackio: {why}; the run goes on, and what it does not take is left out")

    def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5.0)


class _Gone(Exception):
    """trackio's process does not answer any more; the text says why."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _line_within(stream: IO[bytes], seconds: float) -> bytes | None:
    """One line from a pipe; None where none comes in time, empty where the other side has ended. No two overlap."""
    until, line = time.monotonic() + seconds, b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                return None
            part = os.read(stream.fileno(), 4096)
            if not part:
                return b""
            line += part
    return line


# --- the process ----------------------------------------------------------------------------------------------------


def main() -> int:
    """Read messages from standard input, a line each, and answer each with a line. Ends with the process PARENT."""
    die_with_parent(int(sys.argv[1]))
    os.nice(10)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # trackio prints: away with it
    for line in sys.stdin:
        message = json.loads(line)
        try:
            _hand_on(message)
            error = ""
        # Whatever trackio raises is its own affair; the run is told in a line and goes on.
        except Exception as raised:  # noqa: BLE001
            error = f"{type(raised).__name__}: {str(raised).strip() or 'without a word'}".splitlines()[0]
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()
        if message.get("finish"):
            break
    return 0


def _hand_on(message: Message) -> None:
    trackio = importlib.import_module("trackio")
    if "start" in message:
        trackio.init(**message["start"])
    elif message.get("finish"):
        trackio.finish()
    else:
        values = dict(message["metrics"])
        if message["sheet"] is not None:
            values["contact sheet"] = trackio.Image(message["sheet"])
        trackio.log(values, step=message["step"])


if __name__ == "__main__":
    sys.exit(main())
