"""A stand-in for the Hugging Face Hub: the calls that huggingface_hub makes to publish, on loopback, in memory.

Known: creating repositories, validating a card's header, listing a tree in pages, preupload, the LFS batch with PUT and
verify, commits as ndjson. It keeps what was sent (`files`), counts every request (`requests`), and fails on command
(`fail`, `cut`, `slow_s`). Not known: Xet, multipart uploads, histories, downloads. Only OWNER's names may be written.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

OWNER, TOKEN = "ada", "hf_" + "standin" * 4
PAGE = 7  # entries of a listing's page: small, so that a test meets several


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    commits: list[str] = field(default_factory=list)


@dataclass
class Fault:
    """Answers the requests that match with a status, `times` times; "cut" breaks the connection half-way."""

    pattern: str
    status: int
    times: int
    headers: dict[str, str]
    cut: bool = False


class HubStandIn:
    """with HubStandIn() as hub: hub.url is what HF_ENDPOINT has to be."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.objects: dict[str, bytes] = {}  # large files by sha256, also those that no commit names yet
        self.requests: list[str] = []
        self.unknown: list[str] = []
        self.faults: list[Fault] = []
        self.slow_s = 0.0  # seconds that each large file takes
        self.lock = threading.Lock()
        stand_in = self

        class Bound(_Handler):
            hub = stand_in

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> HubStandIn:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def fail(self, pattern: str, status: int, times: int = 1, **headers: str) -> None:
        """pattern: a regular expression that "METHOD path" has to contain."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.faults.append(Fault(pattern, status, times, named))

    def cut(self, pattern: str, times: int = 1) -> None:
        """Break the connection when half of the body has come."""
        self.faults.append(Fault(pattern, 0, times, {}, cut=True))

    def files(self, kind: str, name: str) -> dict[str, bytes]:
        return self.repositories[kind, name].files

    def count(self, pattern: str) -> int:
        """Requests so far that contain this regular expression."""
        return sum(re.search(pattern, request) is not None for request in self.requests)

    def save(self, kind: str, name: str, folder: Path) -> None:
        """The files of a repository, as somebody who fetches it gets them."""
        for path, content in self.files(kind, name).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)

    def fault_of(self, request: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and re.search(fault.pattern, request):
                    fault.times -= 1
                    return fault
        return None


class _Answer(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    hub: HubStandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are two writes, 40 ms apart otherwise

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        path = urlsplit(self.path).path
        request = f"{self.command} {path}"
        self.hub.requests.append(request)
        fault = self.hub.fault_of(request)
        length = int(self.headers.get("Content-Length", 0))
        if fault is not None and fault.cut:
            self.rfile.read(length // 2)
            self.close_connection = True
            self.connection.close()
            return
        body = self.rfile.read(length)
        if fault is not None:
            self._send(fault.status, {"error": f"told to answer {fault.status}"}, fault.headers)
            return
        try:
            self._send(200, *self._answer(path, body))
        except _Answer as answer:
            self._send(answer.status, {"error": str(answer)}, {})

    def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, path: str, body: bytes) -> tuple[Any, dict[str, str]]:
        if found := re.fullmatch(r"/lfs/([0-9a-f]{64})", path):  # a signed address: without a token
            return self._put(found[1], body), {}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise _Answer(401, "Invalid credentials in Authorization header")
        values = json.loads(body) if body and "ndjson" not in self.headers.get("Content-Type", "") else {}
        if path == "/api/repos/create":
            return self._create(values), {}
        if path == "/api/validate-yaml":
            return _validate(values), {}
        if path == "/verify":
            if len(self.hub.objects.get(values["oid"], b"")) != values["size"]:
                raise _Answer(422, "the object is not whole")
            return {}, {}
        if found := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            self._repository("dataset" if found[1] else "model", found[2], write=True)
            return {"transfer": "basic", "objects": [self._action(one) for one in values["objects"]]}, {}
        found = re.fullmatch(r"/api/(model|dataset)s/([^/]+/[^/]+)(?:/(tree|preupload|commit)/main(?:/(.*))?)?", path)
        if not found:
            self.hub.unknown.append(f"{self.command} {path}")
            raise _Answer(404, "unknown to the stand-in")
        kind, name, what = found[1], found[2], found[3]
        repository = self._repository(kind, name, write=what in ("preupload", "commit"))
        if what == "tree":
            return self._tree(repository)
        if what == "preupload":
            return {"files": [_mode(one, repository) for one in values["files"]]}, {}
        if what == "commit":
            return self._commit(repository, body, name), {}
        return {"id": name, "sha": sha1(str(repository.commits).encode()).hexdigest()}, {}

    def _repository(self, kind: str, name: str, write: bool) -> Repository:
        repository = self.hub.repositories.get((kind, name))
        if repository is None:
            raise _Answer(404, "Repository not found")
        if write and name.partition("/")[0] != OWNER:
            raise _Answer(403, "you have no write access to it")
        return repository

    def _create(self, values: dict[str, Any]) -> dict[str, str]:
        key = (values.get("type", "model"), f"{values['organization']}/{values['name']}")
        if key in self.hub.repositories:
            raise _Answer(409, "You already created this repo")
        if values["organization"] != OWNER:
            raise _Answer(403, f"You don't have the rights to create a {key[0]} under that namespace")
        self.hub.repositories[key] = Repository(values.get("visibility") == "private")
        self.hub.repositories[key].files[".gitattributes"] = b"*.png filter=lfs\n"
        return {"url": f"{self.hub.url}/{key[1]}", "name": key[1]}

    def _tree(self, repository: Repository) -> tuple[Any, dict[str, str]]:
        start = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        paths = list(repository.files)
        page, rest = paths[start : start + PAGE], paths[start + PAGE :]
        address = f"{self.hub.url}{urlsplit(self.path).path}?recursive=True&cursor={start + PAGE}"
        entries = [_entry(path, repository.files[path], path in repository.large) for path in page]
        return entries, {"Link": f'<{address}>; rel="next"'} if rest else {}

    def _action(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if wanted["oid"] in self.hub.objects:
            return wanted
        actions = {
            "upload": {"href": f"{self.hub.url}/lfs/{wanted['oid']}", "header": {}},
            "verify": {"href": f"{self.hub.url}/verify", "header": {}},
        }
        return {**wanted, "actions": actions}

    def _put(self, oid: str, body: bytes) -> dict[str, str]:
        if self.hub.slow_s:
            time.sleep(self.hub.slow_s)
        if sha256(body).hexdigest() != oid:
            raise _Answer(400, "the bytes are others than announced")
        self.hub.objects[oid] = body
        return {}

    def _commit(self, repository: Repository, body: bytes, name: str) -> dict[str, Any]:
        lines = [json.loads(line) for line in body.splitlines()]
        files, large = dict(repository.files), set(repository.large)
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                repository.commits.append(value["summary"])
                continue
            path = value["path"]
            large.discard(path)
            if line["key"] == "file":
                files[path] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.objects:
                    raise _Answer(400, f"{path}: the object was never sent")
                files[path] = self.hub.objects[value["oid"]]
                large.add(path)
            elif line["key"] == "deletedFile":
                if files.pop(path, None) is None:
                    raise _Answer(404, "A file with this name doesn't exist")
            else:
                raise _Answer(400, f"unknown operation {line['key']}")
        repository.files, repository.large = files, large
        oid = sha1(f"{name} {len(repository.commits)}".encode()).hexdigest()
        return {"commitUrl": f"{self.hub.url}/{name}/commit/{oid}", "commitOid": oid, "success": True}


def _entry(path: str, content: bytes, large: bool) -> dict[str, Any]:
    digest = sha256(content).hexdigest()
    kept = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\n".encode() if large else content
    entry = {"type": "file", "path": path, "size": len(content), "oid": _blob(kept)}
    return {**entry, "lfs": {"oid": digest, "size": len(content), "pointerSize": len(kept)}} if large else entry


def _blob(content: bytes) -> str:
    """The name that git gives to a file's content."""
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _mode(file: dict[str, Any], repository: Repository) -> dict[str, Any]:
    """Pictures, weights and whatever is no text go the way of large files."""
    path, sample = unquote(file["path"]), base64.b64decode(file["sample"])
    large = path.endswith((".png", ".safetensors")) or b"\0" in sample
    there = repository.files.get(path)
    oid = None if there is None else sha256(there).hexdigest() if path in repository.large else _blob(there)
    return {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}


def _validate(values: dict[str, Any]) -> dict[str, Any]:
    """The header of a card: a mapping, and base_model and datasets have to look like names on the Hub."""
    head = re.match(r"---\n(.*?)\n---\n", values["content"], re.DOTALL)
    data = yaml.safe_load(head[1]) if head else None
    if not isinstance(data, dict):
        raise _Answer(400, "the header is no mapping")
    for name in [*data.get("datasets", []), *([data["base_model"]] if "base_model" in data else [])]:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or name.startswith("."):
            raise _Answer(400, f"{name} is no name on the Hub")
    return {"errors": [], "warnings": []}
