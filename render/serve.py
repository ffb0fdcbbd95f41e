"""The studio's own loopback web server: one per browser, so that a page is a real origin with a strict policy.

Pages come over HTTP (not file: or data:) for two reasons: V8 keeps compiled code of the libraries in its cache, which
saves 0.1 CPU seconds a page, and the Content-Security-Policy comes as a header that the page cannot remove. The
libraries and the harness run by a nonce; the sketch runs as an external script without one, because import() inherits
the nonce of the script that calls it. There is no other source, no connection, no worker, no frame, no eval.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from render.errors import SetupError
from render.settings import RenderSettings

STUDIO = Path(__file__).parent / "studio"
LIBRARIES = {
    "/p5.min.js": STUDIO / "node_modules/p5/lib/p5.min.js",
    "/p5.brush.js": STUDIO / "node_modules/p5.brush/dist/p5.brush.js",
}
MASK_MODULE = STUDIO / "build/mask.wasm"
# The text of p5.brush whose use of its 2D canvases studio/mask.js knows.
KNOWN_BRUSH = "6991d50b458478e1783b974ba027f28a59bda06c3b3cc6c501a5b30a8a360bcb"
PAGE_SCRIPTS = ("first.js", "mask.js", "blend.js", "seal.js", "harness.js")
FOREVER = "public, max-age=31536000, immutable"


def read_api() -> dict:
    """api.json: every name a sketch may use and every name that is refused, with its group."""
    return json.loads((STUDIO / "api.json").read_text())


class StudioServer:
    """Serves the page, the libraries and the current sketch on a port of `host`; `prepare` sets what is painted next.

    refused: patches that the installed p5.brush does not match, with a line that says so. Raises SetupError when p5,
    p5.brush or the mask's module is not installed.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        for path in LIBRARIES.values():
            if not path.is_file():
                raise SetupError(f"{path.name} is not installed under render/studio/node_modules: run `make setup`")
        if not MASK_MODULE.is_file():
            raise SetupError(f"{MASK_MODULE.name} is not built: run `make setup`")
        self._files = {name: path.read_bytes() for name, path in LIBRARIES.items()}
        self._files |= {f"/{name}": (STUDIO / name).read_bytes() for name in PAGE_SCRIPTS}
        module = base64.b64encode(MASK_MODULE.read_bytes()).decode()
        self._files["/mask.wasm.js"] = f'studio.maskModule = "{module}";'.encode()
        brush = hashlib.sha256(self._files["/p5.brush.js"]).hexdigest()
        self.refused: dict[str, str] = {}
        if brush != KNOWN_BRUSH:
            self.refused["mask"] = f"patch mask is left out: it does not know this p5.brush (sha256 {brush[:12]}...)"
        self._html = (STUDIO / "harness.html").read_text()
        self._api = read_api()
        self._sketch = ""
        self._page_settings: dict[str, Any] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Requests are not logged."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A browser that is killed breaks its connections: nothing to report."""

        self._http = Server((host, 0), Handler)
        self.origin = f"http://{host}:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def prepare(self, source: str, seed: int, settings: RenderSettings) -> None:
        """Set what the next page will paint."""
        self._sketch = source
        self._page_settings = {
            "api": self._api,
            "parameters": parameters(self._api),
            "methods": settings.methods,
            "max_side": settings.max_side,
            "seed": seed,
            "source": source,
            "patches": [patch for patch in settings.patches() if patch not in self.refused],
        }

    def page(self) -> str:
        return f"{self.origin}/studio"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        headers = {"Cache-Control": "no-store"}
        if path == "/studio":
            body, kind = self._page(headers), "text/html"
        elif path == "/sketch.js":
            body, kind = self._wrapped(), "text/javascript"
        elif path in self._files:
            body, kind = self._files[path], "text/javascript"
            headers["Cache-Control"] = FOREVER
        else:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Type", f"{kind}; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def _page(self, headers: dict[str, str]) -> bytes:
        nonce = secrets.token_urlsafe(18)
        headers["Content-Security-Policy"] = "; ".join(
            (
                "default-src 'none'",
                f"script-src 'wasm-unsafe-eval' 'nonce-{nonce}' {self.origin}/sketch.js",
                "style-src 'unsafe-inline'",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )
        settings = json.dumps(self._page_settings).replace("<", "\\u003c")
        return self._html.replace("NONCE", nonce).replace("SETTINGS", settings).encode()

    def _wrapped(self) -> bytes:
        """The sketch inside the sealed scope. The caller has made sure that it is a whole Script by itself, so that its
        brackets cannot close the wrapper's."""
        head, tail = scope(self._page_settings["parameters"])
        return (head + self._sketch + tail).encode()


def parameters(api: dict[str, Any]) -> list[str]:
    """Names that a sketch may use, of what `read_api` gives."""
    names = ["brush", "p5", *api["p5"]["functions"], *api["p5"]["constants"], *api["javascript"]]
    return [name for name in names if name not in {"undefined", "NaN", "Infinity"}]


def scope(names: Sequence[str]) -> tuple[str, str]:
    """What stands before and after a sketch, whose first line is still line 1.

    Names that are allowed become parameters (fast); every other name that the sketch does not declare meets the proxy
    of `with`.
    """
    head = f'studio.run(function(){{with(this)return function({",".join(names)}){{return function(){{"use strict";'
    hooks = ",".join(f'{name}:typeof {name}==="function"?{name}:void 0' for name in ("setup", "draw"))
    return head, f"\n;return{{{hooks}}}}}}}}})"
