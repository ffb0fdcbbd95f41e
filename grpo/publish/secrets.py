"""What must not go up: tokens, and where things lie on this machine.

    cleaner = Cleaner(run_folder, {"/data/models/base": "base"})
    cleaner.text(text)         any text: known places and secrets are replaced
    cleaner.config(toml)       a config: also every value that is an absolute path keeps its last part alone

Secrets are the values of environment variables whose name says so, the token that is stored by `hf auth login`, what
looks like a token of the Hub or of OpenAI, and name and password in an address. Places are the run's folder, the
working folder and the home folder. Left out: pictures and weights, which hold no text of ours.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from huggingface_hub.constants import HF_TOKEN_PATH

HIDDEN = "[hidden]"
NAMES = ("TOKEN", "KEY", "SECRET", "PASSWORD")
SHORTEST = 8  # characters of an environment variable that is taken for a secret; shorter ones are switches
# By what each begins: most texts have none of it, and that is seen quickly.
PATTERNS = {
    "hf_": re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    "sk-": re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    "://": re.compile(r"(?<=://)[^/\s:@\"']+:[^/\s@\"']+(?=@)"),
}


class Cleaner:
    """folder: the run's, which becomes ".". places: further absolute paths, and what stands for each."""

    def __init__(self, folder: Path, places: Mapping[str, str] | None = None) -> None:
        known = {
            str(Path.home()): "~",
            str(Path.cwd()): "...",
            str(folder.absolute()): ".",
            str(folder.resolve()): ".",
            **(places or {}),
        }
        self._secrets = _secrets()
        # The longest first: a run's folder lies in the home folder. "/" and "/home" alone say nothing.
        self._places = [
            (place, re.compile(rf"(?<![\w.~-]){re.escape(place)}(?![\w-])"), known[place])
            for place in sorted(known, key=len, reverse=True)
            if place.startswith("/") and len(place) > 1
        ]

    def text(self, text: str) -> str:
        """The text without secrets and places of this machine."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for start, pattern in PATTERNS.items():
            if start in text:
                text = pattern.sub(HIDDEN, text)
        for place, pattern, name in self._places:
            if place in text:
                text = pattern.sub(lambda found, name=name: name, text)  # type: ignore[misc]
        return text

    def config(self, toml: str) -> str:
        """A config as TOML. Of a value that is an absolute path its last part stays."""
        return tomli_w.dumps(self.settings(toml))

    def settings(self, toml: str) -> dict[str, Any]:
        """The same as tables."""
        return {name: self._value(value) for name, value in tomllib.loads(toml).items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._value(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner) for inner in value]
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"[/~][^\n]*", value):
            return f".../{Path(value).name}"
        return self.text(value)


def _secrets() -> list[str]:
    found = {
        value for name, value in os.environ.items() if name.upper().endswith(NAMES) and len(value.strip()) >= SHORTEST
    }
    stored = Path(HF_TOKEN_PATH)
    if stored.is_file():
        found.add(stored.read_text(encoding="utf-8", errors="replace").strip())
    return sorted((secret for secret in found if len(secret) >= SHORTEST), key=len, reverse=True)
