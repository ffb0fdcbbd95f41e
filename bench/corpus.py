"""What the benchmark paints: its own sketches, and on request some of the tests, the pool and the grammar."""

from __future__ import annotations

from pathlib import Path

import numpy

from grpo.grammar import sample_sketch
from render.errors import UserError
from reward.pool import EMBEDDED

SKETCHES = Path(__file__).parent / "sketches"
FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "sketches"
SEED = "seed_"  # 20 to 25 filled shapes on 600 x 600, as the published set-up paints them
LIGHT = "four_pears"
QUICK = (LIGHT, "small_canvas", "seed_camellia", "seed_tulips")


def corpus(names: tuple[str, ...] = ()) -> dict[str, str]:
    """Source of each sketch of the corpus by name, or of those named. Raises UserError for an unknown name."""
    sources = {path.stem: path.read_text(encoding="utf-8") for path in sorted(SKETCHES.glob("*.js"))}
    for name in names:
        if name not in sources:
            raise UserError(f"there is no sketch {name!r} in bench/sketches; there are {', '.join(sources)}")
    return {name: sources[name] for name in names or sources}


def other_sets(count: int) -> dict[str, list[str]]:
    """Up to `count` sketches of each other set: `tests`, `pool` and `grammar`, what the small policy starts from."""
    rng = numpy.random.default_rng(0)
    files = {"tests": sorted(FIXTURES.glob("*.js")), "pool": sorted(EMBEDDED.glob("sources/*.js"))}
    sets = {name: [path.read_text(encoding="utf-8") for path in paths[:count]] for name, paths in files.items()}
    sets["grammar"] = [sample_sketch(rng) for _ in range(count)]
    return sets
