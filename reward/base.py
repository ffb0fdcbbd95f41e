"""The protocol of a reward term, and the records that travel through `reward`.

A term looks at one candidate and answers with a `Score`: a float in 0..1, or None when it could not be scored for a
reason that is not the candidate's fault (a scorer that did not answer). None is never turned into 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from render.painting import Painting


@dataclass(frozen=True)
class Candidate:
    """One reply of the policy: its text, the sketch found in it (None = none found), and what became of the sketch."""

    reply: str
    source: str | None
    painting: Painting | None


@dataclass(frozen=True)
class Reference:
    """One painting of the pool. tier: `love` or `okay`. image: the PNG. name: file stem, unique in the pool."""

    name: str
    tier: str
    png: bytes
    source: str = ""
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """value: 0..1 or None (not scored, `cause` says why). info: JSON-able details that the journal keeps."""

    value: float | None
    info: dict[str, Any] = field(default_factory=dict)
    cause: str = ""


class Term(Protocol):
    """One term of the reward. name: the key in the logs; stand_in: True where a small local stand-in takes the place
    of the real scorer, so that every table can say so."""

    name: str
    stand_in: bool

    def score(self, candidate: Candidate, references: Sequence[Reference]) -> Score: ...


@dataclass(frozen=True)
class Verdict:
    """The whole judgement of one candidate.

    outcome: `scored` (reward is a float), `rejected` (reward 0.0; reason and detail say which rule) or `unscored`
    (reward None; reason says the cause). terms: the score of each term that was asked.
    """

    reward: float | None
    outcome: str
    reason: str = ""
    detail: str = ""
    terms: dict[str, Score] = field(default_factory=dict)
