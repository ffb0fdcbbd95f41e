"""python -m grpo.watch RUN [--port N]: serves RUN/gallery on this machine, and the page follows the run.

Open the address that it prints; Ctrl-C ends it. Nobody but this machine can reach it: it listens on 127.0.0.1 alone,
and answers only requests that were made to a name of this machine, so that no page from elsewhere can read it through
the browser. From another machine: ssh -L PORT:127.0.0.1:PORT HOST.

    GET events     text/event-stream: `data: VERSION` at once, and whenever the gallery has changed

Where no run keeps the gallery fresh itself (grpo.background), it is done here: when the run has written something, one
refresh at a time, with pauses between. Left out: anything but GET and HEAD, lists of folders, ranges.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rich.console import Console

from grpo.background import NICENESS, Claim
from grpo.stages import Stages
from render.errors import UserError, exit_code

HOST = "127.0.0.1"
LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
WRITTEN = ("metrics.jsonl", "rollouts.jsonl", "rollouts.partial.jsonl")
LOOK_S = 0.5  # between two looks at the run and the gallery
BEAT_S = 15.0  # between two signs of life to a page that waits
PAUSE = 5.0  # after a refresh, times what it took
LONGEST_PAUSE_S = 10.0
WAITING = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Gallery</title>'
    '<p style="font: 1rem sans-serif; padding: 2rem">The gallery is not there yet: it is made after the first step.'
)
Say = Callable[[str], None]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grpo.watch", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder, for instance runs/laptop")
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: work(arguments), "stopped")


def work(arguments: argparse.Namespace) -> int:
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    run: Path = arguments.run
    if not (run / "config.toml").is_file() and not (run / "rollouts.jsonl").is_file():
        raise UserError(f"{run}: not a run folder (it holds neither config.toml nor rollouts.jsonl)")
    if not 0 <= arguments.port <= 65535:
        raise UserError(f"--port: 0 to 65535, not {arguments.port}")
    gallery = run / "gallery"
    watcher = Watcher(run, gallery, say)
    with serve(gallery, watcher, arguments.port) as server:
        with Stages(console) as stages:
            watcher.refresh(show=stages.show)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        threading.Thread(target=watcher.follow, name="watcher", daemon=True).start()
        print(f"http://{HOST}:{server.server_port}/", flush=True)
        say("Ctrl-C ends it")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("stopped")
        finally:
            watcher.stop()
    return 0


class Watcher:
    """Brings the gallery up to date when the run has written something, and knows when it has changed."""

    def __init__(self, run: Path, gallery: Path, say: Say) -> None:
        self.run, self.gallery, self.say = run, gallery, say
        self.version = ""
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._claim = Claim(run)
        self._seen: tuple[tuple[int, int], ...] = ()
        self._rest_until = 0.0
        self._failed = False

    def follow(self) -> None:
        """Until stop(): look, refresh, tell the pages. Runs on a thread of its own."""
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)  # Linux: of this thread alone
        while not self._stopped.wait(LOOK_S):
            self.refresh()
            version = fingerprint(self.gallery)
            if version != self.version:
                with self._changed:
                    self.version = version
                    self._changed.notify_all()

    def refresh(self, show: Callable[[str, int, int], None] = lambda name, done, total: None) -> None:
        """Build what is new, unless nothing is, or a run does it by itself, or the last time was just now."""
        written = sizes(self.run)
        if written == self._seen or time.monotonic() < self._rest_until or not self._claim.take():
            return
        from grpo.gallery import build

        started = time.monotonic()
        try:
            build([self.run], self.gallery, show=show)
            self._seen, self._failed = written, False
        except UserError as error:
            if not self._failed:
                self.say(f"the gallery could not be refreshed: {error}")
            self._failed = True
        finally:
            self._claim.release()
            now = time.monotonic()
            self._rest_until = now + min(PAUSE * (now - started), LONGEST_PAUSE_S)
            if not self.version:
                self.version = fingerprint(self.gallery)

    def wait(self, known: str, seconds: float) -> str:
        """The version, as soon as it is another one than `known`, at the latest after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != known or self._stopped.is_set(), seconds)
            return self.version

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()


def sizes(run: Path) -> tuple[tuple[int, int], ...]:
    """Size and time of what a run appends to; changes whenever it has written something."""
    found = []
    for name in WRITTEN:
        try:
            stat = (run / name).stat()
        except FileNotFoundError:
            found.append((0, 0))
        else:
            found.append((stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def fingerprint(gallery: Path) -> str:
    """Stands for the state of a gallery: of its page and of data/runs.js, which is written last and whole."""
    found = []
    for name in ("index.html", "data/runs.js"):
        try:
            stat = (gallery / name).stat()
        except FileNotFoundError:
            continue
        found.append(f"{stat.st_size:x}.{stat.st_mtime_ns:x}")
    return "-".join(found)


class Server(ThreadingHTTPServer):
    """A thread a request; none of them keeps the program from ending."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away is no fault of ours; anything else is shown as usual."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def serve(gallery: Path, watcher: Watcher, port: int) -> Server:
    """A server that is bound and not yet served. Raises UserError where the port is taken."""

    class Handler(GalleryHandler):
        root = gallery.resolve()
        watch = watcher

    try:
        return Server((HOST, port), Handler)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "is taken by another program" if error.errno == errno.EADDRINUSE else "may not be used"
            raise UserError(f"--port {port}: the port {why}; leave it out for any that is free") from None
        raise


class GalleryHandler(SimpleHTTPRequestHandler):
    """Files under `root`, and the events of `watch`."""

    root: Path
    watch: Watcher
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "grpo.watch", ""
    timeout = 60

    def do_GET(self) -> None:
        if not self._is_local():
            return
        if self._path() == "events":
            self._events()
        elif not self._path() and not (self.root / "index.html").is_file():
            self._wait_page()
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_local():
            super().do_HEAD()

    def _is_local(self) -> bool:
        """A page of another site may point a name of its own at 127.0.0.1; the Host header then tells."""
        host = self.headers.get("Host", "").strip().lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name in LOCAL:
            return True
        self.send_error(HTTPStatus.FORBIDDEN, "only for names of this machine")
        return False

    def _path(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    def translate_path(self, path: str) -> str:
        """The file that a request names, or one that does not exist where it would lead out of the gallery."""
        place = self._path()
        found = (self.root / (place or "index.html")).resolve() if "\0" not in place else self.root
        inside = found.is_relative_to(self.root) and not any(part.startswith(".") for part in Path(place).parts)
        return str(found) if inside and found.is_file() else str(self.root / ".nothing")

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the terminal is for what the run does."""

    def _wait_page(self) -> None:
        words = WAITING.encode()
        self.send_response(HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def _events(self) -> None:
        """The gallery's version at once, so that nothing is missed between a page's data and this, and each new one."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self._send("retry: 2000\n\n")
        known = ""
        while not self.watch.stopped:
            version = self.watch.wait(known, BEAT_S)
            self._send(": still here\n\n" if version == known else f"data: {version}\n\n")
            known = version

    def _send(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


if __name__ == "__main__":
    sys.exit(main())
