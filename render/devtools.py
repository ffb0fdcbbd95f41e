"""Whether the page of a browser still answers, asked past the driver (Chrome DevTools Protocol).

While a sketch runs, the driver waits for it and takes no other question. A second connection to the page can: a page
whose thread is free answers at once, one that computes without end, or whose machine gives it no time, does not.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import websocket


def page_answers(pids: Iterable[int], seconds: float) -> bool:
    """Whether the one page of the browser among `pids` evaluates an expression within `seconds`."""
    limit = time.monotonic() + seconds
    try:
        port = _port(pids)
        if port is None:
            return False
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=seconds) as answer:
            targets = json.load(answer)
        address = next(target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page")
        # The browser refuses connections that name an origin, as those of a web page would.
        connection = websocket.create_connection(
            address, timeout=max(0.1, limit - time.monotonic()), suppress_origin=True
        )
        try:
            connection.send(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": {"expression": "1"}}))
            connection.settimeout(max(0.1, limit - time.monotonic()))
            return json.loads(connection.recv()).get("id") == 1
        finally:
            connection.close(timeout=0)
    except (OSError, ValueError, StopIteration, websocket.WebSocketException):
        return False


def _port(pids: Iterable[int]) -> int | None:
    """Port of the browser's DevTools, which it writes into its profile's folder."""
    for pid in pids:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        for argument in arguments:
            if argument.startswith(b"--user-data-dir="):
                file = Path(argument.partition(b"=")[2].decode()) / "DevToolsActivePort"
                if file.is_file():
                    return int(file.read_text().split()[0])
    return None
