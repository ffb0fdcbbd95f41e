"""The preference term made of HPSv3: how much people would like the painting as an answer to a text.

HPSv3 (see `reward.hps_model`) answers with a normal distribution over an unbounded score; its mean mu is the score of
a Bradley-Terry model, so that sigmoid(mu_a - mu_b) is the chance that a is preferred to b. A reward term needs 0..1:

  sigmoid   sigmoid(mu / T)                                             the recipe, with T = 4
  pool      mean over all paintings of the pool of sigmoid((mu - mu_ref) / T)     the chance to win against the pool
  clip      (mu - lowest) / (highest - lowest), cut to 0..1

mu and log sigma stand in every score's info as they came. A score that is not a number is not a score. torch is
imported only where the scorer is built.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from PIL import Image

from render.disk import locked, write_whole
from render.errors import SetupError
from render.pixels import decode
from reward.base import Candidate, Reference, Score
from reward.features import paper_colour
from reward.instruction import CACHE, load_instruction
from reward.pool import Pool
from reward.settings import Hpsv3Settings

JUDGED_AT_START = 5  # paintings of the pool that must beat blank paper


class Scorer(Protocol):
    """What the term needs of the model. identity: all that decides its answers beside picture and text."""

    identity: str

    def measure(self, pngs: Sequence[bytes], text: str) -> list[tuple[float, float]]:
        """(mu, log sigma) of each painting as an answer to the text."""
        ...


def sigmoid(mu: float, temperature: float) -> float:
    """1 / (1 + exp(-mu / temperature)), without overflow."""
    return 0.5 * (1.0 + math.tanh(mu / temperature / 2.0))


def against_pool(mu: float, references: Sequence[float], temperature: float) -> float:
    """Mean of sigmoid((mu - reference) / temperature)."""
    return math.fsum(sigmoid(mu - reference, temperature) for reference in references) / len(references)


def clip(mu: float, lowest: float, highest: float) -> float:
    """0 at `lowest`, 1 at `highest`, linear between them."""
    return min(1.0, max(0.0, (mu - lowest) / (highest - lowest)))


class Preference:
    """Term `preference`. references_mu: mu of every painting of the pool, needed for normalise = "pool"."""

    name = "preference"
    stand_in = False

    def __init__(
        self, scorer: Scorer, settings: Hpsv3Settings, text: str, references_mu: Sequence[float] | None = None
    ) -> None:
        if settings.normalise == "pool" and not references_mu:
            raise ValueError('normalise = "pool" needs the scores of the pool')
        self.scorer = scorer
        self.settings = settings
        self.text = text
        self.references_mu = tuple(references_mu or ())

    def score(self, candidate: Candidate, references: Sequence[Reference] = ()) -> Score:
        """The normalised score. What the scorer raises (out of memory, a fault of the device) travels on."""
        if candidate.painting is None or candidate.painting.png is None:
            return Score(None, cause="there is no painting")
        [(mu, log_sigma)] = self.scorer.measure([candidate.painting.png], self.text)
        if not (math.isfinite(mu) and math.isfinite(log_sigma)):
            return Score(None, cause=f"HPSv3 answered mu {mu}, log sigma {log_sigma}")
        return Score(self.normalised(mu), {"mu": mu, "log_sigma": log_sigma})

    def normalised(self, mu: float) -> float:
        """mu -> 0..1, as the settings say."""
        settings = self.settings
        if settings.normalise == "pool":
            return against_pool(mu, self.references_mu, settings.temperature)
        if settings.normalise == "clip":
            return clip(mu, settings.lowest, settings.highest)
        return sigmoid(mu, settings.temperature)

    def self_test(self, pool: Pool) -> None:
        """Raise SetupError unless the median of some loved paintings beats the median of their blank sheets.

        A sheet has the size and the paper of its painting. A scorer that fails here is not the one that its name says,
        or it cannot see what the pool shows; a policy would learn from it to paint nothing.
        """
        loved = pool.tier("love")
        chosen = loved[:: math.ceil(len(loved) / JUDGED_AT_START)]
        sheets = [_blank_sheet(reference.png) for reference in chosen]
        painted, blank = (
            statistics.median(mu for mu, _ in self.scorer.measure(pngs, self.text))
            for pngs in ([reference.png for reference in chosen], sheets)
        )
        if not painted > blank:
            raise SetupError(
                f"HPSv3 likes blank paper (median mu {blank:.3f}) at least as much as paintings that the pool loves "
                f'(median mu {painted:.3f} of {len(chosen)}) for the text "{self.text}": it cannot teach, '
                "so the run does not start; look at [subject] preference_text and at the weights"
            )


def measure_pool(scorer: Scorer, text: str, pool: Pool, folder: Path = CACHE) -> list[float]:
    """mu of every painting of the pool, in the pool's order. Measured once: kept on disk by scorer, text and picture.

    Raises SetupError where one of them has no finite score.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(json.dumps([scorer.identity, text]).encode()).hexdigest()
    path = folder / f"pool-{key[:32]}.json"
    pictures = {hashlib.sha256(reference.png).hexdigest(): reference for reference in pool.references}
    with locked(folder / "lock"):
        known: dict[str, list[float]] = json.loads(path.read_bytes()) if path.is_file() else {}
        fresh = [picture for picture in pictures if picture not in known]
        if fresh:
            answers = scorer.measure([pictures[picture].png for picture in fresh], text)
            for picture, (mu, log_sigma) in zip(fresh, answers, strict=True):
                if not math.isfinite(mu):
                    raise SetupError(f"HPSv3 answered mu {mu} for {pictures[picture].name} of the pool {pool.origin}")
                known[picture] = [mu, log_sigma]
            write_whole(path, json.dumps(known).encode())
    return [known[hashlib.sha256(reference.png).hexdigest()][0] for reference in pool.references]


def build_hpsv3(settings: Hpsv3Settings, text: str, pool: Pool, folder: Path = CACHE) -> Preference:
    """The preference term, tested and ready. folder: where the instruction lies and the pool's scores are kept.

    Raises ConfigError and SetupError: a piece missing, weights that are not HPSv3's, a self-test that fails.
    """
    settings.validate()
    instruction = load_instruction(folder)
    from reward.hps_model import Hpsv3

    scorer = Hpsv3(settings, instruction)
    references_mu = measure_pool(scorer, text, pool, folder) if settings.normalise == "pool" else None
    term = Preference(scorer, settings, text, references_mu)
    term.self_test(pool)
    return term


def _blank_sheet(png: bytes) -> bytes:
    picture = decode(png)
    red, green, blue = (round(float(channel)) for channel in paper_colour(picture))
    buffer = io.BytesIO()
    Image.new("RGB", (picture.shape[1], picture.shape[0]), (red, green, blue)).save(buffer, "PNG")
    return buffer.getvalue()
