"""A model server on loopback, a stand-in for writers and critics: JudgeServer's HTTP and faults, answers of its own."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from bench.judge_server import JudgeServer, Request

SKETCH = """```javascript
function setup() {{ createCanvas(200, 200, WEBGL); brush.noStroke(); noLoop(); }}
function draw() {{
  background(250, 244, 230);
  brush.fill("#c8323c", 210);
  brush.circle({x}, 0, {radius});
}}
```"""


def sketch(x: int = 0, radius: int = 60) -> str:
    return "Here it is.\n" + SKETCH.format(x=x, radius=radius)


def texts(payload: dict[str, Any]) -> str:
    """All that a request says in words."""
    found = []
    for message in payload["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(found)


def pictures(payload: dict[str, Any]) -> int:
    contents = [message["content"] for message in payload["messages"] if isinstance(message["content"], list)]
    return sum(part["type"] == "image_url" for content in contents for part in content)


class ModelServer(JudgeServer):
    """`answer(payload)` is the content of a completion. `asked(model)` lists the requests to a model, but for the short
    first question."""

    def __init__(self, answer: Callable[[dict[str, Any]], str], **values: Any) -> None:
        self.answer = answer
        super().__init__(**values)

    def arrived(self, payload: dict[str, Any], headers: dict[str, str]) -> tuple[Request, str | None]:
        key = (hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest(), "")
        with self.lock:
            attempt = sum(request.key == key for request in self.requests)
            request = Request(len(self.requests), attempt, b"", b"", key, payload, headers, time.monotonic())
            self.requests.append(request)
        return request, self.darkness or self.fault(request)

    def completion(self, request: Request, kind: str | None) -> dict[str, Any]:
        content = "yes" if is_probe(request.payload) else self.answer(request.payload)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
        named = {"id": "1", "object": "chat.completion", "created": 0, "model": request.payload["model"]}
        return {**named, "choices": [choice], "usage": usage}

    def asked(self, model: str) -> list[dict[str, Any]]:
        payloads = [request.payload for request in self.requests]
        return [payload for payload in payloads if payload["model"] == model and not is_probe(payload)]


def is_probe(payload: dict[str, Any]) -> bool:
    return texts(payload).startswith("Answer with the word yes")
