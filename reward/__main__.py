"""python -m reward PAINTING.png ...: score finished paintings with the scorers of a config.

Each painting gets a row: what each term gives, and the reward. The length term measures the sketch: NAME.js beside the
painting, or in ../sketches or ../sources, where runs and pools keep it; without it the reward is left open if the
length is paid. Exit codes: 0 scored, 2 a mistake or something missing, 3 a scorer did not answer for a painting, 130
stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from render.errors import UserError, exit_code
from render.painting import Outcome, Painting
from render.pixels import coverage
from reward.base import Candidate, Reference, Score
from reward.config import DEFAULT, ScoringConfig, load, scorers
from reward.draw import half_and_half
from reward.mix import Mix, display_name


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m reward", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paintings", nargs="+", metavar="PAINTING.png", type=Path)
    parser.add_argument("--config", default=str(DEFAULT), help=f"whose scorers are asked; default {DEFAULT}")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE")
    parser.add_argument("--seed", type=int, default=0, help="of the references that the judge compares with")
    parser.add_argument("--json", action="store_true", help="one JSON object a painting instead of the table")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: score(arguments), "stopped")


def score(arguments: argparse.Namespace) -> int:
    notes = Console(stderr=True)

    def say(text: str) -> None:
        notes.print(text, markup=False, highlight=False, soft_wrap=True)

    candidates = [(path, read_painting(path)) for path in arguments.paintings]
    config = load(arguments.config, arguments.overrides)
    with scorers(config, say, lambda done, total: say(f"painting the pool: {done} of {total}")) as (mix, pool):
        references = half_and_half(pool, config.pool.references, arguments.seed, 0)
        rows = [(path, candidate, judge(mix, candidate, references)) for path, candidate in candidates]
        if arguments.json:
            for path, candidate, scores in rows:
                print(json.dumps(record(path, candidate, scores, config), ensure_ascii=False))
        else:
            Console().print(table(rows, mix, config))
            say(f"references of the judge: {', '.join(reference.name for reference in references)}")
    return 3 if any(score.cause for _, _, scores in rows for score in scores.values()) else 0


def read_painting(path: Path) -> Candidate:
    """A file as a candidate. Raises UserError when it is not a picture."""
    try:
        png = path.read_bytes()
        covered = coverage(png)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a picture that can be read ({error})") from error
    places = [
        path.with_suffix(".js"),
        *(path.parent.parent / name / f"{path.stem}.js" for name in ("sketches", "sources")),
    ]
    sketch = next((place.read_text(encoding="utf-8") for place in places if place.is_file()), None)
    return Candidate("", sketch, Painting(Outcome.PAINTED, png=png, coverage=covered, finished=True))


def judge(mix: Mix, candidate: Candidate, references: Sequence[Reference]) -> dict[str, Score]:
    """The score of each term; that of the length is left out where there is no sketch."""
    verdict = mix.judge(candidate, references)
    return {name: score for name, score in verdict.terms.items() if name != "length" or candidate.source is not None}


def total(scores: dict[str, Score], config: ScoringConfig) -> float | None:
    """The reward, or None where a paid term has no value."""
    weights = {name: weight for name, weight in config.reward.weights.as_dict().items() if weight > 0}
    values = [(weight, scores[name].value if name in scores else None) for name, weight in weights.items()]
    if any(value is None for _, value in values):
        return None
    return sum(weight * value for weight, value in values if value is not None)


def record(path: Path, candidate: Candidate, scores: dict[str, Score], config: ScoringConfig) -> dict[str, Any]:
    painting = candidate.painting
    return {
        "painting": str(path),
        "reward": total(scores, config),
        "coverage": painting.coverage if painting else None,
        "terms": {name: score.value for name, score in scores.items()},
        "info": {
            name: {**score.info, **({"cause": score.cause} if score.cause else {})} for name, score in scores.items()
        },
    }


def table(rows: Sequence[tuple[Path, Candidate, dict[str, Score]]], mix: Mix, config: ScoringConfig) -> Table:
    """A row a painting: reward, terms and what the scorers add to them."""
    shown = Table(title="Scores", title_justify="left")
    shown.add_column("painting", overflow="fold")
    shown.add_column("reward", justify="right")
    for term in mix.terms:
        shown.add_column(f"{display_name(term)}\n{config.reward.weights.as_dict()[term.name]:g}", justify="right")
    shown.add_column("details", overflow="fold")
    for path, _, scores in rows:
        reward = total(scores, config)
        values = (scores[term.name].value if term.name in scores else None for term in mix.terms)
        details = [f"{name}: {score.cause}" for name, score in scores.items() if score.cause]
        if "mu" in scores["preference"].info:
            details.append("mu {mu:.2f}, log sigma {log_sigma:.2f}".format(**scores["preference"].info))
        won = scores["judge"].info.get("won", {})
        details += [f"beats {name} {value:.2f}" for name, value in won.items()]
        shown.add_row(str(path), _number(reward), *map(_number, values), "; ".join(details))
    return shown


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
