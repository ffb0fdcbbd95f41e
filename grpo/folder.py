"""Run folders, found and read. What lies in one is said in grpo.journal, which writes it.

Torch is not imported here, so that what only reads a run starts quickly.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from render.errors import UserError


def new_folder(root: Path, name: str) -> Path:
    """root/name, or root/name-2, -3, ... where that is taken."""
    folder, number = root / name, 1
    while folder.exists():
        number += 1
        folder = root / f"{name}-{number}"
    return folder


def latest_folder(root: Path, name: str) -> Path | None:
    """The newest run of that name, or None."""
    found = [path for path in root.glob(f"{name}*") if (path / "config.toml").exists() and _same_name(path.name, name)]
    return max(found, key=lambda path: path.stat().st_ctime, default=None)


def _same_name(folder: str, name: str) -> bool:
    rest = folder.removeprefix(name)
    return rest == "" or (rest.startswith("-") and rest[1:].isdigit())


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file; a last line that a crash cut short is left out."""
    if not path.exists():
        return []
    rows = []
    # By line feeds alone: a text may hold other characters that str.splitlines cuts at.
    for line in path.read_bytes().split(b"\n"):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError:  # no JSON, or cut inside a character
            break
    return rows


def write_error(path: Path, error: OSError) -> UserError:
    """One line for a failed write; what was on disk before is untouched."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"{path}: the disk is full; nothing that was there is lost: free some space, then use --resume"
        )
    return UserError(f"{path}: cannot be written: {error.strerror or error}")
