"""python -m reward.pool build WORKSHOP -o POOL: the paintings rated love or okay as a pool in the public layout.

    POOL/
      images/{tier}_{name}.png   sources/{tier}_{name}.js
      metadata.jsonl   a line a painting; README.md   the dataset card

WORKSHOP is a workshop or any other folder that was rated. With --pairs, paintings that were only compared get a tier by
their strength. The folder is written beside its place and moved there when it is whole.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError
from rich.console import Console

from render.errors import ConfigError, SetupError, UserError
from render.pixels import coverage
from reward.config import ScoringConfig, load
from reward.hps import Scorer
from reward.pool import TIERS
from reward.pool.card import card
from reward.pool.ratings import Ratings
from reward.pool.workshop import IMAGES, METADATA, RATINGS, SOURCES, Item, items, read_lines, tally

KEPT = (
    "subject",
    "generator_model",
    "refinement_round",
    "hpsv3_mu",
    "gate_errors",
    "critic_model",
    "reference_photo",
    "reference_photo_licence",
    "reference_photo_attribution",
    "reference_photo_url",
    "title",
)


@dataclass(frozen=True)
class Chosen:
    """A painting that goes into the pool. strength: from the pairs, None where it was in none."""

    item: Item
    tier: str
    strength: float | None

    @property
    def stem(self) -> str:
        """{tier}_{name}; what comes out of a pool keeps one tier in its name, not two."""
        name = self.item.name
        for tier in TIERS:
            name = name.removeprefix(f"{tier}_")
        return f"{self.tier}_{name}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("workshop", type=Path, metavar="WORKSHOP", help="folder whose paintings were rated")
    add("-o", "--output", type=Path, required=True, metavar="POOL", help="folder to write")
    add("--ratings", type=Path, metavar="FILE", help=f"where the ratings are; default WORKSHOP/{RATINGS}")
    add("--pairs", metavar="LOVE:OKAY", help="shares of the paintings known from pairs alone that get each tier")
    add("--licence", default="cc-by-4.0", help="of the pool, for its card; default cc-by-4.0")
    add("--title", help="of the card; default: the folder's name")
    add("--hpsv3", action="store_true", help="measure hpsv3_mu, with the HPSv3 that lies on this machine")
    add("--config", metavar="CONFIG", help="whose [reward.hpsv3] and [subject] --hpsv3 goes by")
    add("--replace", action="store_true", help="replace a pool that is there already")


def run(arguments: argparse.Namespace) -> int:
    """Write the pool; 0. Raises UserError in one line."""
    console = Console(stderr=True)
    if arguments.config and not arguments.hpsv3:
        raise ConfigError("--config has no effect without --hpsv3")
    output: Path = arguments.output
    if output.exists() and not (arguments.replace and (output / METADATA).is_file()):
        hint = "--replace puts the new pool in its place" if (output / METADATA).is_file() else "name another folder"
        raise UserError(f"{output} is there already; {hint}")
    paintings = items(arguments.workshop)
    events = read_lines(arguments.ratings or arguments.workshop / RATINGS)
    if not events:
        raise UserError(f"nothing is rated yet: python -m reward.pool rate {arguments.workshop}")
    chosen = choose(paintings, Ratings([item.name for item in paintings], events), _shares(arguments.pairs))
    pngs = [as_png(one.item.image) for one in chosen]
    scores: Sequence[float | None] = [None] * len(chosen)
    if arguments.hpsv3:
        scores = _hpsv3(load(arguments.config) if arguments.config else ScoringConfig(), pngs)
    rows = [row(one, png, score) for one, png, score in zip(chosen, pngs, scores, strict=True)]
    columns = list(dict.fromkeys(key for one in rows for key in one))
    rows = [{key: one.get(key) for key in columns} for one in rows]
    title = arguments.title or output.resolve().name
    write(output, chosen, pngs, rows, card(rows, title, arguments.licence, len(paintings)))
    counts = ", ".join(f"{count} {tier}" for tier, count in tally(one.tier for one in chosen).items())
    console.print(
        f"{output}: {counts}\nlook it over:  python -m reward.pool check {output}\n"
        f'use it:        [pool] source = "{output}"',
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return 0


def choose(paintings: Sequence[Item], ratings: Ratings, shares: tuple[float, float] | None = None) -> list[Chosen]:
    """The paintings of the pool in the order of the folder. shares: (love, okay) of those known from pairs alone.

    Raises UserError where a tier would be empty, or two would have one name.
    """
    rated, strengths = ratings.by_name(), ratings.strengths()
    tiers = {name: rating for name, rating in rated.items() if rating in TIERS}
    if shares is not None:
        compared = [item.name for item in paintings if item.name in strengths and item.name not in rated]
        ordered = sorted(compared, key=lambda name: -strengths[name].beta)
        loved, kept = round(shares[0] * len(ordered)), round(sum(shares) * len(ordered))
        tiers |= {name: "love" if place < loved else "okay" for place, name in enumerate(ordered[:kept])}
    chosen = [
        Chosen(item, tiers[item.name], strengths[item.name].beta if item.name in strengths else None)
        for item in paintings
        if item.name in tiers
    ]
    for tier in TIERS:
        if not any(one.tier == tier for one in chosen):
            raise UserError(f"no painting is of tier {tier}; a pool needs both: rate on, or see --pairs")
    stems = [one.stem for one in chosen]
    double = next((stem for stem in stems if stems.count(stem) > 1), None)
    if double is not None:
        raise UserError(f"two paintings would both be called {double}; rename one")
    return chosen


def row(chosen: Chosen, png: bytes, mu: float | None) -> dict[str, Any]:
    """One line of metadata.jsonl: what is known, and nothing that is not."""
    meta: Mapping[str, Any] = chosen.item.meta
    found: dict[str, Any] = {"file_name": f"{IMAGES}/{chosen.stem}.png"}
    if chosen.item.source is not None:
        found["source_file"] = f"{SOURCES}/{chosen.stem}.js"
    found["tier"] = chosen.tier
    found |= {key: meta[key] for key in KEPT if meta.get(key) is not None}
    if mu is not None:
        found["hpsv3_mu"] = round(mu, 4)
    found["paint_coverage"] = round(coverage(png), 4)
    if chosen.strength is not None:
        found["strength"] = round(chosen.strength, 3)
    return found


def as_png(path: Path) -> bytes:
    """The file, or its picture as a PNG if it is of another kind. Raises UserError where it is no picture."""
    try:
        content = path.read_bytes()
        picture = Image.open(io.BytesIO(content))
        if picture.format == "PNG":
            picture.verify()
            return content
        buffer = io.BytesIO()
        picture.convert("RGB").save(buffer, "PNG")
        return buffer.getvalue()
    except (OSError, UnidentifiedImageError, SyntaxError) as error:
        raise UserError(f"{path}: not a picture that can be read ({error})") from error


def write(
    output: Path, chosen: Sequence[Chosen], pngs: Sequence[bytes], rows: Sequence[dict[str, Any]], readme: str
) -> None:
    """Write the folder beside its place and move it there; what stood there goes last. Raises UserError."""
    part, old = (output.with_name(f".{output.name}.{ending}") for ending in ("part", "old"))
    try:
        for leftover in (part, old):
            shutil.rmtree(leftover, ignore_errors=True)
        for name in (IMAGES, SOURCES):
            (part / name).mkdir(parents=True)
        for one, png in zip(chosen, pngs, strict=True):
            (part / IMAGES / f"{one.stem}.png").write_bytes(png)
            if one.item.source is not None:
                shutil.copyfile(one.item.source, part / SOURCES / f"{one.stem}.js")
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (part / METADATA).write_text(lines, encoding="utf-8")
        (part / "README.md").write_text(readme, encoding="utf-8")
        if output.exists():
            output.rename(old)
        part.rename(output)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise UserError(f"{error.filename or output}: cannot be written: {error.strerror}") from error


def measured(scorer: Scorer, text: str, pngs: Sequence[bytes]) -> list[float]:
    """mu of each painting as an answer to the text."""
    return [mu for mu, _ in scorer.measure(pngs, text)]


def _hpsv3(config: ScoringConfig, pngs: Sequence[bytes]) -> list[float]:
    from reward.hps_files import missing_pieces

    missing = missing_pieces(config.reward.hpsv3)
    if missing:
        raise SetupError("--hpsv3: " + "; ".join(missing))
    from reward.hps_model import Hpsv3
    from reward.instruction import load_instruction

    return measured(Hpsv3(config.reward.hpsv3, load_instruction()), config.subject.preference_text, pngs)


def _shares(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        love, okay = (float(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"--pairs {text}: two shares are needed, as in 0.3:0.4") from None
    if not (love > 0 and okay > 0 and love + okay <= 1):
        raise ConfigError(f"--pairs {text}: both shares must be above 0, and their sum at most 1")
    return love, okay
