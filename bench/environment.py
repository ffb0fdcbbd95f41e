"""The machine and the programs that a result belongs to."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from render.serve import STUDIO
from render.settings import RenderSettings


def environment() -> dict[str, Any]:
    """CPU model, cores, memory in MiB, kernel, Python, versions of p5 and p5.brush, the page's fingerprint, load."""
    return {
        "cpu": _value(Path("/proc/cpuinfo"), "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": int(_value(Path("/proc/meminfo"), "MemTotal").split()[0]) // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("p5", "p5.brush")},
        "page": page_fingerprint(),
        "load_average": load_average(),
    }


def page_fingerprint() -> str:
    """SHA-256, shortened, of the page's own files: results of different ones must not be mixed."""
    digest = hashlib.sha256()
    for path in sorted((*STUDIO.glob("*.js"), *STUDIO.glob("*.html"), *STUDIO.glob("build/*.wasm"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def load_average() -> list[float]:
    """Processes that ran or waited to run, mean over the last 1, 5 and 15 minutes."""
    return [round(load, 2) for load in os.getloadavg()]


def describe_profile(settings: RenderSettings, info: dict[str, Any]) -> dict[str, Any]:
    """A profile as it really ran: patches in force, what the browser says of itself, settings unlike the defaults."""
    defaults = asdict(RenderSettings())
    changed = {name: value for name, value in asdict(settings).items() if value != defaults[name]}
    named = {**info, "binary": Path(info["binary"]).name} if "binary" in info else dict(info)
    return {"patches": list(settings.patches()), "settings": changed, **named}


def _value(path: Path, key: str) -> str:
    """The value behind `key:` in a file of /proc; "unknown" where the kernel does not say it."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"


def _version(package: str) -> str:
    path = STUDIO / "node_modules" / package / "package.json"
    return str(json.loads(path.read_text(encoding="utf-8"))["version"])
