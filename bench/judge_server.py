"""A judge on loopback: a real HTTP server of the chat-completions protocol that can fail in every way a real one does.

`rule(first, second)` says in logits how much the first of two PNG files is better. `fault(request)` names the way in
which a request fails (a key of FAULTS), or None; `fail_rate` lets that share fail, in ways drawn from a seed, the same
however the threads run. `dark()` and `light()` switch the whole judge off and on. `delivered` counts the good answers
that went out, by (sha256 of the first picture, of the second): above 1 means that an answer was paid for twice.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image

FAULTS = {
    "429": "too many requests, with Retry-After in seconds",
    "429_date": "the same with an HTTP date",
    "400": "a request that is refused",
    "401": "a wrong token",
    "402": "no credit left",
    "404": "no such model",
    "500": "a server that broke",
    "503": "a server that is overloaded",
    "500_list": "an error whose body is JSON, but no object",
    "hang": "no answer at all",
    "html": "a web page with status 200",
    "json": "half a JSON body with status 200",
    "empty": "JSON with status 200 that is no completion",
    "null": "a completion without content",
    "verdict": "a completion with words, but no verdict",
    "no_logprobs": "a completion without log-probabilities",
    "scattered": "log-probabilities, but hardly any for the letters",
    "reset": "a connection that is cut in the middle of the body",
}
DRAWN = ("429", "500", "503", "hang", "html", "json", "null", "verdict", "no_logprobs", "reset")
HANG_S = 30.0


@dataclass(frozen=True)
class Request:
    """number: 0, 1, 2... in order of arrival. attempt: how often this pair had been asked for before. at: seconds."""

    number: int
    attempt: int
    first: bytes
    second: bytes
    key: tuple[str, str]
    payload: dict[str, Any]
    headers: dict[str, str]
    at: float

    @property
    def soft(self) -> bool:
        return bool(self.payload.get("logprobs"))


@lru_cache(maxsize=512)
def brightness(png: bytes) -> float:
    return float(np.asarray(Image.open(io.BytesIO(png)).convert("L"), dtype=float).mean())


def brighter(first: bytes, second: bytes) -> float:
    """An honest judge, if a simple one."""
    return (brightness(first) - brightness(second)) / 20.0


def always_first(first: bytes, second: bytes) -> float:
    return 2.0


class JudgeServer:
    """Answers as soon as it is built; to be used in a `with` statement. url: for [reward.vlm] base_url."""

    def __init__(
        self,
        rule: Callable[[bytes, bytes], float] = brighter,
        fault: Callable[[Request], str | None] = lambda request: None,
        fail_rate: float = 0.0,
        seed: int = 0,
        retry_after: str = "0",
        delay_s: float = 0.0,
    ) -> None:
        self.rule = rule
        self.fault = fault
        self.fail_rate = fail_rate
        self.seed = seed
        self.retry_after = retry_after
        self.delay_s = delay_s
        self.darkness: str | None = None
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.faults: Counter[str] = Counter()
        self.delivered: Counter[tuple[str, str]] = Counter()
        self.in_flight = 0
        self.most_in_flight = 0
        self.ended = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def __enter__(self) -> JudgeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def dark(self, kind: str = "503") -> None:
        self.darkness = kind

    def light(self) -> None:
        self.darkness = None

    def close(self) -> None:
        self.ended.set()
        self.http.shutdown()
        self.http.server_close()

    def arrived(self, payload: dict[str, Any], headers: dict[str, str]) -> tuple[Request, str | None]:
        """The request as it is noted down, and the way in which it is to fail."""
        content = payload["messages"][-1]["content"]
        urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
        first, second = (base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls)
        key = (hashlib.sha256(first).hexdigest(), hashlib.sha256(second).hexdigest())
        with self.lock:
            attempt = sum(request.key == key for request in self.requests)
            request = Request(len(self.requests), attempt, first, second, key, payload, headers, time.monotonic())
            self.requests.append(request)
        kind = self.darkness or self.fault(request) or self._drawn(request)
        if kind is not None:
            with self.lock:
                self.faults[kind] += 1
        return request, kind

    def _drawn(self, request: Request) -> str | None:
        dice = random.Random(f"{self.seed} {request.key} {request.attempt}")
        if dice.random() >= self.fail_rate:
            return None
        without = "verdict" if request.soft else "no_logprobs"
        return dice.choice([kind for kind in DRAWN if kind != without])

    def completion(self, request: Request, kind: str | None) -> dict[str, Any]:
        logit = self.rule(request.first, request.second)
        content: str | None
        winner = "first" if logit > 0 else "second"
        content = json.dumps({"winner": winner, "reason": f"it is better by {abs(logit):.2f}"})
        logprobs = None
        if request.soft:
            content = "A" if logit > 0 else "B"
            share = 0.2 if kind == "scattered" else 0.98
            mass = {"A": share / (1 + math.exp(-logit)), "B": share / (1 + math.exp(logit)), "The": 1.0 - share}
            told = [{"token": token, "logprob": math.log(mass[token])} for token in sorted(mass, key=mass.__getitem__)]
            place = {**told[-1], "top_logprobs": told}
            logprobs = None if kind == "no_logprobs" else {"content": [place]}
        if kind == "null":
            content, logprobs = None, None
        if kind == "verdict":
            content = "I like the first one for its washes and the second one for its edges."
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": request.payload["model"],
            "system_fingerprint": "",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": content},
                    "logprobs": logprobs,
                }
            ],
            "usage": {"prompt_tokens": 700, "completion_tokens": 1 if request.soft else 30, "total_tokens": 731},
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path != "/v1/chat/completions":
                    self.reply(404, b'{"error": "no such path"}')
                    return
                with server.lock:
                    server.in_flight += 1
                    server.most_in_flight = max(server.most_in_flight, server.in_flight)
                try:
                    self.answer(*server.arrived(json.loads(body), dict(self.headers)))
                except OSError:
                    pass  # the client has gone
                finally:
                    with server.lock:
                        server.in_flight -= 1

            def answer(self, request: Request, kind: str | None) -> None:
                server.ended.wait(server.delay_s)
                if kind == "hang":
                    server.ended.wait(HANG_S)
                    self.cut()
                elif kind == "reset":
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", "4000")
                    self.end_headers()
                    self.wfile.write(b'{"id": "1", "choices": [')
                    self.wfile.flush()
                    self.cut()
                elif kind == "html":
                    self.reply(200, b"<html><body>Sign in to the network</body></html>", content="text/html")
                elif kind == "json":
                    self.reply(200, b'{"id": "1", "choices": [{"index": 0, ')
                elif kind == "empty":
                    self.reply(200, b'{"object": "error", "message": "try later"}')
                elif kind == "500_list":
                    self.reply(500, b'["broken"]')
                elif kind is not None and kind[:3].isdigit():
                    after = {}
                    if kind.startswith("429"):
                        date = format_datetime(
                            datetime.now(UTC) + timedelta(seconds=float(server.retry_after)), usegmt=True
                        )
                        after["Retry-After"] = date if kind == "429_date" else server.retry_after
                    self.reply(int(kind[:3]), json.dumps({"error": FAULTS[kind]}).encode(), after)
                else:
                    body = json.dumps(server.completion(request, kind)).encode()
                    if kind is None:  # noted first: whoever has the answer must find it counted
                        with server.lock:
                            server.delivered[request.key] += 1
                    self.reply(200, body)

            def reply(
                self, status: int, body: bytes, headers: dict[str, str] | None = None, content: str = "application/json"
            ) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content)
                self.send_header("Content-Length", str(len(body)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def cut(self) -> None:
                """End the connection with a reset."""
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler
