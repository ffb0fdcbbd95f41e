"""The place of one worker in the farm: its process, its pipe and its folder, from the start to the last trace.

Only the farm's supervisor thread touches a seat. Workers are started by that thread too: the kernel signals a worker
when the *thread* that started it ends.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from render.hub import Hub
from render.painting import Painting
from render.processes import Identity, alive, identify, kill, kill_all, remove_folder
from render.settings import RenderSettings
from render.worker import Fault

START_LIMIT_S = 120.0  # a browser that has not started by then never will
# Beyond the deadline that the worker itself enforces, for one that gives signs of life and for one that is silent.
GRACE_S = 20.0
SILENT_GRACE_S = 0.5
SILENCE_S = 2.5  # a worker's guard sends something every half second, yet may wait for a browser to die
STALLED_S = 30.0  # silence after which a worker is ended whatever it does
CLOSE_S = 3.0

_COMMAND = ("-P", "-c", "from render.worker import main; main()")


@dataclass
class Order:
    """A submitted sketch on its way. avoid: the seat that failed it, -1 for none."""

    number: int
    source: str
    seed: int
    future: Future[Painting]
    submitted: float
    waiting_since: float
    waited: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    avoid: int = -1


@dataclass(frozen=True)
class Recovery:
    """A browser was lost at an attempt and replaced; readings of the monotonic clock, in seconds.

    index: of the worker. began: when the attempt was handed out. fault: what ended it, and when that was noticed.
    ready: when the seat could paint again.
    """

    index: int
    began: float
    fault: Fault
    ready: float


@dataclass(eq=False)
class Seat:
    """The place of one worker, and the process that sits there now.

    state: down, starting, idle, busy or leaving, and `since` when. heard: when the worker last sent anything.
    lost: when the attempt began that lost the browser, and to what, until another is ready.
    due: its browser has painted enough or grown too much. successor_of: the seat that this one is to take over when
    its browser is ready. last: its successor is ready, so that it ends when it has painted what it paints now.
    """

    index: int
    successor_of: Seat | None = None
    state: str = "down"
    since: float = 0.0
    heard: float = 0.0
    process: subprocess.Popen[bytes] | None = None
    connection: Connection | None = None
    identity: frozenset[Identity] = frozenset()
    browser: frozenset[Identity] = frozenset()
    hub: Hub | None = None
    session: str = ""
    folder: Path = Path()
    order: Order | None = None
    failures: int = 0
    fresh: bool = False
    lost: tuple[float, Fault] | None = None
    due: bool = False
    last: bool = False

    def enter(self, state: str) -> None:
        self.state, self.since = state, time.monotonic()

    def start(self, settings: RenderSettings) -> None:
        """Start a worker here; it says Ready or StartFailed when it knows."""
        ours, theirs = Pipe()
        self.folder = Path(tempfile.gettempdir()) / f"render-farm-{secrets.token_hex(8)}"
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))))
        with theirs:
            self.process = subprocess.Popen(
                (sys.executable, *_COMMAND, str(theirs.fileno()), str(os.getpid()), str(self.folder)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,
            )
        self.connection, self.identity, self.browser = ours, identify([self.process.pid]), frozenset()
        self.hub = Hub(settings.grid_url) if settings.grid_url else None
        self.enter("starting")
        self.heard, self.due, self.last = self.since, False, False
        self.send((settings, self.index))

    def send(self, message: object) -> None:
        assert self.connection is not None
        try:
            self.connection.send(message)
        except OSError:
            # The worker is dead; its pipe says so to the farm, which then clears the seat.
            return

    def silent(self) -> bool:
        """Whether the worker has given no sign of life for a while: it is stopped or stuck, or the machine is."""
        return time.monotonic() - self.heard > SILENCE_S

    def stuck(self, deadline_s: float) -> str:
        """Why the worker has to be ended from outside, as one line; empty while it may yet answer or start."""
        now = time.monotonic()
        silent, lasted = now - self.heard, now - self.since
        if self.state not in ("starting", "idle", "busy"):
            return ""
        if silent > STALLED_S or (self.state == "busy" and self.silent() and lasted > deadline_s + SILENT_GRACE_S):
            return f"the worker gave no sign of life in {silent:.0f} s"
        if self.state == "busy" and lasted > deadline_s + GRACE_S + (START_LIMIT_S if self.fresh else 0.0):
            return f"the worker gave no answer in {lasted:.0f} s"
        if self.state == "starting" and lasted > START_LIMIT_S:
            return f"no browser in {lasted:.0f} s"
        return ""

    def leave(self) -> None:
        """End of file tells the worker to end its browser and itself; `clear` is due when it has."""
        assert self.connection is not None
        self.connection.close()
        self.enter("leaving")

    def left(self) -> bool:
        """Whether a leaving worker has ended, or never will by itself."""
        assert self.process is not None
        return self.process.poll() is not None or time.monotonic() - self.since > CLOSE_S

    def clear(self) -> None:
        """End the worker and whatever is left of it; the seat is down when this returns."""
        assert self.process is not None
        assert self.connection is not None
        self.connection.close()
        # The worker first, alone: its guardian then ends the browser and removes the folder, even if this process is
        # killed in the meantime.
        kill(self.identity)
        limit = time.monotonic() + CLOSE_S
        while (self.folder.exists() or alive(self.browser)) and time.monotonic() < limit:
            time.sleep(0.005)
        kill_all(self.browser)
        if self.hub is not None and self.session:
            self.hub.end(self.session)
            self.session = ""
        # SIGKILL has been sent: this only collects the process.
        self.process.wait()
        remove_folder(self.folder)
        self.process, self.connection = None, None
        self.identity = self.browser = frozenset()
        self.enter("down")
