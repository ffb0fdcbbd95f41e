"""Small pictures, and a judge that asks a `JudgeServer`, with all pauses made short."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from bench.judge_server import JudgeServer
from render.painting import Outcome, Painting
from reward.answers import AnswerStore
from reward.base import Candidate, Reference
from reward.judge import Judge
from reward.judge_remote import RemoteJudge
from reward.settings import VlmSettings
from reward.verdict import Prompt

CRITERIA = "- Better: the brighter one."


def shade(level: int, side: int = 16) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (level, level, level)).save(buffer, "PNG")
    return buffer.getvalue()


def candidate(level: int) -> Candidate:
    return Candidate("", "", Painting(Outcome.PAINTED, png=shade(level)))


def references(*levels: int) -> list[Reference]:
    return [Reference(f"ref {level}", "love", shade(level)) for level in levels]


def settings_for(server: JudgeServer, folder: Path, **values: object) -> VlmSettings:
    defaults = {
        "backend": "server",
        "base_url": server.url,
        "model": "tiny",
        "timeout_s": 5.0,
        "tries": 3,
        "pause_s": 0.1,
        "concurrency": 4,
        "cache": str(folder / "judge.sqlite"),
    }
    settings = VlmSettings(**{**defaults, **values})
    settings.validate()
    return settings


def judge_at(server: JudgeServer, folder: Path, on_wait=lambda text: None, **values: object) -> Judge:
    settings = settings_for(server, folder, **values)
    store = AnswerStore(Path(settings.cache))
    return Judge(RemoteJudge(settings), Prompt(settings.mode, CRITERIA), settings, store, on_wait, pause_scale=0.01)
