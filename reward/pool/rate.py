"""python -m reward.pool rate FOLDER: a page on this machine to rate paintings, or to say which of two is better.

FOLDER is a workshop, a pool, a run's folder, or any folder with pictures. Keys: 1 love, 2 okay, 3 nope, 4 meh, u or
Backspace takes the last one back, arrows move, p changes to pairs (arrows say which is better, = says neither).

A rating is a line of FOLDER/ratings.jsonl, on the disk before the page is told that it is saved. While this command
does not run, the page keeps what is rated and sends it when the command is back. The page is for this machine alone: it
answers only to its own address, and takes ratings only from its own page.
"""

from __future__ import annotations

import argparse
import errno
import hmac
import json
import mimetypes
import random
import secrets
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from rich.console import Console

from render.errors import UserError
from reward.pool.ratings import Ratings, Refused
from reward.pool.workshop import RATINGS, Item, Log, items

PAGE = Path(__file__).with_name("page")
FILES = {"/": "rate.html", "/rate.css": "rate.css", "/rate.js": "rate.js"}
PORT = 8020
LARGEST_BODY = 64 * 1024
POLICY = "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'"
SHOWN = (
    "subject",
    "tier",
    "generator_model",
    "refinement_round",
    "paint_coverage",
    "feedback",
    "reference_photo",
    "reference_photo_licence",
    "reference_photo_attribution",
    "reference_photo_url",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="whose paintings are rated")
    parser.add_argument("--ratings", type=Path, metavar="FILE", help=f"where ratings go; default FOLDER/{RATINGS}")
    parser.add_argument("--port", type=int, default=PORT, help=f"of 127.0.0.1; default {PORT}, 0 = any that is free")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Raises UserError in one line."""
    paintings = items(arguments.folder)
    log = Log(arguments.ratings or arguments.folder / RATINGS)
    try:
        server = RatingServer(paintings, log, arguments.port)
    except (OSError, OverflowError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        hint = "is taken; is this page open already? If not, name another" if taken else f"cannot be used ({error})"
        raise UserError(
            f"port {arguments.port} of 127.0.0.1 {hint}: --port NUMBER, or 0 for any that is free"
        ) from None
    console = Console(stderr=True, highlight=False)
    rated = len(set(server.ratings.by_name()) & set(server.items))
    console.print(
        f"{len(paintings)} paintings, {rated} rated; open {server.url}\nratings go to {log.path}; Ctrl-C ends",
        markup=False,
        soft_wrap=True,
    )
    if arguments.open:
        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        rated = len(set(server.ratings.by_name()) & set(server.items))
        console.print(f"\n{rated} of {len(paintings)} rated", markup=False)
    finally:
        server.server_close()
        log.close()
    return 0


class RatingServer(ThreadingHTTPServer):
    """The page and what it asks for, on a port of 127.0.0.1. `serve_forever` works until it is stopped."""

    daemon_threads = True

    def __init__(self, paintings: list[Item], log: Log, port: int = 0) -> None:
        self.items = {item.name: item for item in paintings}
        self.log = log
        self.ratings = Ratings(self.items, log.records)
        self.token = secrets.token_urlsafe(24)
        self.random = random.Random()
        self.texts = {path: (PAGE / name).read_bytes() for path, name in FILES.items()}
        super().__init__(("127.0.0.1", port), Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_port}/"

    def session(self) -> dict[str, Any]:
        """All that the page needs to begin."""
        return {
            "token": self.token,
            "folder": str(self.log.path.resolve()),
            "items": [
                {
                    "name": item.name,
                    "source": item.source is not None,
                    **{key: item.meta[key] for key in SHOWN if item.meta.get(key) not in (None, "")},
                }
                for item in self.items.values()
            ],
            "events": self.ratings.history(),
            "strengths": self.strengths(),
        }

    def strengths(self) -> dict[str, Any]:
        return {
            name: {"beta": round(one.beta, 2), "deviation": round(one.deviation, 2), "pairs": one.pairs}
            for name, one in self.ratings.strengths().items()
            if name in self.items
        }

    def take(self, event: Any) -> None:
        """Write an event to the disk, then count it. Raises Refused and OSError; nothing has changed then."""
        with self.ratings.lock:  # one line after another: a line sent twice must count once
            if isinstance(event, dict) and isinstance(event.get("id"), str) and self.ratings.has(event["id"]):
                return
            clean = self.ratings.check(event)
            self.log.append(clean)
            self.ratings.add(clean)

    def pair(self, wanted: dict[str, str]) -> dict[str, Any]:
        """Two paintings to compare, out of those that the page's filters leave."""
        rated = self.ratings.by_name()
        names = [
            name
            for name, item in self.items.items()
            if _passes(wanted.get("model"), item.meta.get("generator_model"))
            and _passes(wanted.get("round"), item.meta.get("refinement_round"))
            and _passes(wanted.get("rating"), rated.get(name, "unrated"))
        ]
        found = self.ratings.next_pair(names, self.random)
        return {"pair": list(found) if found else None, "of": len(names), "compared": len(self.ratings.pairs())}


def _passes(wanted: str | None, value: Any) -> bool:
    return not wanted or wanted == str(value)


class Handler(BaseHTTPRequestHandler):
    """One request. Everything but the page's own is refused."""

    protocol_version = "HTTP/1.1"
    server: RatingServer
    timeout = 60

    def do_GET(self) -> None:
        if not self._is_ours():
            return
        parts = urlsplit(self.path)
        folder, _, name = parts.path.lstrip("/").partition("/")
        item = self.server.items.get(unquote(name))
        if parts.path in FILES:
            kind = mimetypes.guess_type(FILES[parts.path])[0] or "text/plain"
            self._send(HTTPStatus.OK, self.server.texts[parts.path], f"{kind}; charset=utf-8")
        elif parts.path == "/session":
            self._json(HTTPStatus.OK, self.server.session())
        elif parts.path == "/pair":
            self._json(HTTPStatus.OK, self.server.pair(dict(parse_qsl(parts.query))))
        elif folder == "image" and item is not None:
            kind = mimetypes.guess_type(item.image.name)[0] or "image/png"
            self._file(item.image, kind, "private, max-age=300")
        elif folder == "source" and item is not None and item.source is not None:
            self._file(item.source, "text/plain; charset=utf-8")
        else:
            self._json(HTTPStatus.NOT_FOUND, {"error": "there is nothing here"})

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            self._json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": "a short JSON body is needed"})
            return
        body = self.rfile.read(int(length))
        if not self._is_ours():
            return
        if not hmac.compare_digest(self.headers.get("X-Rating-Token", "").encode(), self.server.token.encode()):
            self._json(HTTPStatus.FORBIDDEN, {"error": "token"})
            return
        if urlsplit(self.path).path != "/rate":
            self._json(HTTPStatus.NOT_FOUND, {"error": "there is nothing here"})
            return
        try:
            self.server.take(json.loads(body))
        except (ValueError, Refused) as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except OSError as error:
            text = f"{self.server.log.path.name} cannot be written: {error.strerror}"
            self._json(HTTPStatus.INSUFFICIENT_STORAGE, {"error": text})
        else:
            self._json(HTTPStatus.OK, {"saved": True, "strengths": self.server.strengths()})

    def _is_ours(self) -> bool:
        """Whether the request names this server and, where a browser says so, comes from its page; refused if not.

        Another site can make a browser send requests here, but not under this server's name (a name that it owns may
        lead to 127.0.0.1), and not with the page's origin.
        """
        origin = self.headers.get("Origin")
        host = self.headers.get("Host", "")
        if host in self.server.hosts and origin in (None, f"http://{host}"):
            return True
        self._json(HTTPStatus.FORBIDDEN, {"error": "only the page of this server may ask"})
        return False

    def _file(self, path: Path, kind: str, keep: str = "no-store") -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            self._json(HTTPStatus.NOT_FOUND, {"error": f"{path.name}: {error.strerror}"})
            return
        self._send(HTTPStatus.OK, content, kind, keep)

    def _json(self, status: HTTPStatus, value: Any) -> None:
        self._send(status, json.dumps(value, ensure_ascii=False).encode(), "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, keep: str = "no-store") -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", keep)
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.end_headers()
            self.wfile.write(content)
        except OSError:  # the page has gone
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass
