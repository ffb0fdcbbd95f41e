"""What a person thought of the paintings of a folder: ratings, undos and pairs, each one line of ratings.jsonl.

    {"id": .., "kind": "rate", "name": .., "rating": "love" | "okay" | "nope" | "meh", "at": ..}
    {"id": .., "kind": "pair", "left": .., "right": .., "winner": "left" | "right" | "equal", "at": ..}
    {"id": .., "kind": "undo", "undoes": id, "at": ..}

The page makes up the ids, so that a line that it sends again, because the answer got lost, counts once. The later
rating of a painting counts. Strengths are those of Bradley and Terry (1952), P(left wins) = sigmoid(beta_left -
beta_right), with a Gaussian prior on beta; an equal pair is half a win for each. The fit is the mode of the posterior,
by Newton's method.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RATINGS = ("love", "okay", "nope", "meh")  # the keys 1 2 3 4, as in the tool that the public pool was rated with
WINNERS = {"left": 1.0, "right": 0.0, "equal": 0.5}
PRIOR_SD = 1.5  # of a painting's strength, in logits
STEPS = 30  # of Newton's method, which takes five or so
SETTLED = 1e-9
LONGEST_ID = 64


class Refused(Exception):
    """An event that cannot be: its text says why."""


@dataclass(frozen=True)
class Strength:
    """beta: in logits, 0 = like the average painting. deviation: how sure that is. pairs: it was in."""

    beta: float
    deviation: float
    pairs: int


class Ratings:
    """The state that a list of events comes to. Safe for several threads."""

    def __init__(self, names: Collection[str], events: Sequence[Mapping[str, Any]] = ()) -> None:
        self.names = set(names)
        self.lock = threading.RLock()
        self.events: dict[str, dict[str, Any]] = {}
        self.undone: set[str] = set()
        self._strengths: dict[str, Strength] | None = None
        for event in events:  # of paintings that are gone, too: their lines stay as they are
            self._take(dict(event))

    def check(self, event: Any) -> dict[str, Any]:
        """The event as it is to be written, or Refused."""
        if not isinstance(event, dict):
            raise Refused("an object is needed")
        kind, key = event.get("kind"), event.get("id")
        if not isinstance(key, str) or not 0 < len(key) <= LONGEST_ID:
            raise Refused(f"id must be a text of 1 to {LONGEST_ID} characters")
        clean: dict[str, Any] = {"id": key, "kind": kind}
        if kind == "rate":
            clean |= self._known(event, "name") | _one_of(event, "rating", RATINGS)
        elif kind == "pair":
            clean |= self._known(event, "left") | self._known(event, "right") | _one_of(event, "winner", WINNERS)
            if clean["left"] == clean["right"]:
                raise Refused("a painting cannot be compared with itself")
        elif kind == "undo":
            with self.lock:
                if not isinstance(event.get("undoes"), str) or event["undoes"] not in self.events:
                    raise Refused("there is nothing of that id to undo")
            clean["undoes"] = event["undoes"]
        else:
            raise Refused("kind must be one of rate, pair, undo")
        return clean | {"at": round(time.time(), 3)}

    def _known(self, event: Mapping[str, Any], key: str) -> dict[str, str]:
        if event.get(key) not in self.names:
            raise Refused(f"{key}: there is no painting {event.get(key)!r}")
        return {key: event[key]}

    def has(self, key: str) -> bool:
        with self.lock:
            return key in self.events or key in self.undone

    def add(self, event: dict[str, Any]) -> None:
        """Take an event that has been checked, and is on the disk."""
        with self.lock:
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        key = event.get("id")
        if not isinstance(key, str) or self.has(key):
            return
        if event.get("kind") != "rate":
            self._strengths = None
        if event.get("kind") == "undo":
            self.events.pop(event.get("undoes", ""), None)
            self.undone |= {key, event.get("undoes", "")}
        else:
            self.events[key] = event

    def history(self) -> list[dict[str, Any]]:
        """What counts and can be undone, the oldest first."""
        with self.lock:
            return list(self.events.values())

    def by_name(self) -> dict[str, str]:
        """The rating of each painting that has one."""
        return {event["name"]: event["rating"] for event in self.history() if event.get("kind") == "rate"}

    def pairs(self) -> list[tuple[str, str, float]]:
        """(left, right, what left won: 1, 0 or a half)."""
        return [
            (event["left"], event["right"], WINNERS[event["winner"]])
            for event in self.history()
            if event.get("kind") == "pair"
        ]

    def strengths(self) -> dict[str, Strength]:
        """Of every painting that was in a pair."""
        with self.lock:
            if self._strengths is None:
                self._strengths = bradley_terry(self.pairs())
            return self._strengths

    def next_pair(self, names: Sequence[str], generator: random.Random) -> tuple[str, str] | None:
        """Two of `names`: one that was compared least, beside the one nearest to it in strength that it has not met.

        None where all have met, or there are fewer than two.
        """
        strengths = self.strengths()
        met: dict[str, set[str]] = {name: set() for name in names}
        for left, right, _ in self.pairs():
            met.setdefault(left, set()).add(right)
            met.setdefault(right, set()).add(left)
        shuffled = generator.sample(list(names), len(names))
        none = Strength(0.0, PRIOR_SD, 0)
        for one in sorted(shuffled, key=lambda name: strengths.get(name, none).pairs):
            others = [name for name in shuffled if name != one and name not in met[one]]
            if others:
                beta = strengths.get(one, none).beta
                other = min(others, key=lambda name: abs(strengths.get(name, none).beta - beta))
                return (one, other) if generator.random() < 0.5 else (other, one)
        return None


def _one_of(event: Mapping[str, Any], key: str, allowed: Collection[str]) -> dict[str, str]:
    if event.get(key) not in allowed:
        raise Refused(f"{key} must be one of {', '.join(allowed)}")
    return {key: event[key]}


def bradley_terry(pairs: Sequence[tuple[str, str, float]]) -> dict[str, Strength]:
    """Strength of each name in (left, right, share that left won)."""
    names = sorted({name for left, right, _ in pairs for name in (left, right)})
    if not names:
        return {}
    index = {name: number for number, name in enumerate(names)}
    rows: NDArray[np.float64] = np.zeros((len(pairs), len(names)))
    for row, (left, right, _) in zip(rows, pairs, strict=True):
        row[index[left]], row[index[right]] = 1.0, -1.0
    won = np.array([value for _, _, value in pairs])
    prior = np.eye(len(names)) / PRIOR_SD**2
    beta = np.zeros(len(names))
    hessian = prior
    for _ in range(STEPS):
        share = 1.0 / (1.0 + np.exp(-(rows @ beta)))
        hessian = (rows.T * (share * (1.0 - share))) @ rows + prior
        move = np.linalg.solve(hessian, rows.T @ (won - share) - prior @ beta)
        # Newton may leap too far from 0 where a painting has won everything; a logit or two at a time is safe.
        beta = beta + move * min(1.0, 2.0 / max(float(np.abs(move).max()), SETTLED))
        if float(np.abs(move).max()) < SETTLED:
            break
    deviations = np.sqrt(np.diag(np.linalg.inv(hessian)))
    counts = np.abs(rows).sum(axis=0)
    return {
        name: Strength(float(beta[number]), float(deviations[number]), int(counts[number]))
        for name, number in index.items()
    }
