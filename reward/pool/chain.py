"""One painting from its first sketch to its last revision: a writer, a painter and a critic take turns.

Round 0 is the writer's answer to the prompt. In each later round the writer has its last sketch and what was said of
it: the critic's words about the painting, or, where nothing could be painted, the rule that the sketch broke (no critic
is asked then). Only the last sketch is shown again, so that the question does not grow from round to round.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from render.disk import write_whole
from render.painting import Outcome, Painting
from render.sketch import find_sketch
from reward.asking import request
from reward.gate import Gate
from reward.pictures import prepared
from reward.pool.models import Calls, Conversation, Model, Reply, picture_part, text_part
from reward.pool.photos import Photo
from reward.pool.workshop import IMAGES, SOURCES, Log

CRITIQUE = """\
Here is a painting that was made by a program out of washes of pigment. What was asked for: "{subject}". You say how the
next version can be better.

{criteria}

Say in one sentence what is good. Then name the three to five changes that would help most, each in one sentence that
says what to do, and where on the sheet. Speak of paint, not of code. At most 150 words.
"""
SEEN = "Your sketch was painted. Somebody who looked at the painting says:\n\n{feedback}\n\n"
STOPPED = "It stopped early with an error: {error}\n\n"
BROKEN = "Your sketch was not painted: {feedback}.\n\n"
REVISE = "Answer with the whole sketch, revised."

Ask = Callable[[Model, Conversation, int], Reply]


class PaintingLost(Exception):
    """The machine, not the sketch, is why there is no painting."""


@dataclass(frozen=True)
class Chain:
    """What is painted, by whom, and which of several tries it is."""

    subject: str
    writer: Model
    index: int
    photo: Photo | None = None


@dataclass(frozen=True)
class Studio:
    """What all chains share. image_size: longer side of what the critic sees, in pixels."""

    system: str
    criteria: str
    critic: Model | None
    rounds: int
    calls: Calls
    candidates: Candidates
    image_size: int

    @property
    def calls_of_a_chain(self) -> int:
        """At most: a sketch that is not painted needs no critic."""
        return self.rounds + 1 + self.rounds


class Candidates:
    """The sketches of a workshop and what became of them. Safe for several threads."""

    def __init__(self, folder: Path, log: Log, gate: Gate, paint: Callable[[str], Painting]) -> None:
        self.folder = folder
        self.log = log
        self.gate = gate
        self.paint = paint
        self.records: dict[str, dict[str, Any]] = {record["name"]: record for record in log.records}
        for name in (IMAGES, SOURCES):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def image(self, name: str) -> Path:
        return self.folder / IMAGES / f"{name}.png"

    def made(self, name: str, reply: str, about: dict[str, Any]) -> dict[str, Any]:
        """The record of a new candidate, on the disk when this returns. Raises PaintingLost, FarmError, OSError."""
        sketch = find_sketch(reply)
        refusal = sketch.refusal if sketch.source is None else self.gate.refuses(sketch.source)
        found: dict[str, Any] = {"outcome": "rejected", "paint_coverage": None, "shapes": 0}
        if sketch.source is None or refusal is not None:
            assert refusal is not None
            found["gate_errors"] = [_line(refusal.reason, refusal.detail, refusal.line)]
        else:
            painting = self.paint(sketch.source)
            if painting.outcome is Outcome.UNSCORED:
                raise PaintingLost(f"{painting.reason}: {painting.detail}")
            if painting.outcome is Outcome.REJECTED or painting.png is None:
                found["gate_errors"] = [_line(painting.reason, painting.detail, painting.line)]
            else:
                write_whole(self.image(name), painting.png)
                found |= {"outcome": "painted", "paint_coverage": painting.coverage, "shapes": painting.shapes}
                found["gate_errors"] = list(painting.errors)
        if sketch.source is not None:
            write_whole(self.folder / SOURCES / f"{name}.js", sketch.source.encode())
        record = {"name": name, **found, **about}
        self.log.append(record)
        self.records[name] = record
        return record


def steps(chain: Chain, studio: Studio, ask: Ask, new: Callable[..., dict[str, Any]]) -> Iterator[tuple[int, dict]]:
    """(calls that this took of `calls_of_a_chain`, record) of each candidate of a chain in turn.

    ask: as Calls.ask. new: as Candidates.made, for a candidate that there is none of yet. Both may raise to end it.
    """
    asked = request(chain.subject)
    first = [text_part(asked), picture_part(chain.photo.png)] if chain.photo else asked
    opening: Conversation = [{"role": "system", "content": studio.system}, {"role": "user", "content": first}]
    conversation = opening
    about: dict[str, Any] = {
        "subject": chain.subject,
        "generator_model": chain.writer.name,
        "generator_at": chain.writer.title,
        **(chain.photo.columns if chain.photo else {}),
        "parent": None,
        "feedback": None,
        "critic_model": None,
    }
    for number in range(studio.rounds + 1):
        reply = ask(chain.writer, conversation, chain.index)
        name = f"{slug(chain.subject)}_r{number}_{chain.writer.key(conversation, chain.index)[:8]}"
        record = studio.candidates.records.get(name)
        if record is None:
            record = new(name, reply.text, about | {"refinement_round": number})
        yield (2 if number else 1), record
        if number == studio.rounds:
            return
        said, critic = _feedback(chain, studio, ask, record)
        about |= {"parent": name, "feedback": said, "critic_model": critic}
        told = (SEEN if critic else BROKEN).format(feedback=said)
        if critic and record["gate_errors"]:
            told += STOPPED.format(error=record["gate_errors"][0])
        conversation = [
            *opening,
            {"role": "assistant", "content": without_thoughts(reply.text)},
            {"role": "user", "content": told + REVISE},
        ]


def _feedback(chain: Chain, studio: Studio, ask: Ask, record: dict[str, Any]) -> tuple[str, str | None]:
    """What is said of a candidate, and by which critic; None where the gate has said it."""
    if record["outcome"] != "painted":
        return record["gate_errors"][0], None
    assert studio.critic is not None
    task = CRITIQUE.replace("{criteria}", studio.criteria.strip()).replace("{subject}", chain.subject)
    content = [text_part(task)]
    if chain.photo:
        content += [text_part("The photograph it was painted from:"), picture_part(chain.photo.png)]
    picture = prepared(studio.candidates.image(record["name"]).read_bytes(), studio.image_size)
    content += [text_part("The painting:"), picture_part(picture.png)]
    said = ask(studio.critic, [{"role": "user", "content": content}], 0).text
    return without_thoughts(said), studio.critic.name


def without_thoughts(text: str) -> str:
    """What stands behind the last closed think block."""
    return text.rpartition("</think>")[2].strip()


def _line(reason: str, detail: str, line: int | None) -> str:
    return f"{reason}: {detail}" + (f" (line {line})" if line else "")


def slug(text: str, longest: int = 32) -> str:
    """A piece of a file name: lower-case letters, digits and underscores, cut at a word."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    if words[:1] in (["a"], ["an"], ["the"]):
        words = words[1:]
    short = ""
    for word in words:
        if short and len(short) + 1 + len(word) > longest:
            break
        short = f"{short}_{word}" if short else word[:longest]
    return short or "painting"
