"""What scoring by itself needs of a run's config: the tables [render], [reward], [subject] and [pool].

`python -m reward` and `python -m reward.calibrate` read the same file as `grpo.run`; the tables of training are left
alone here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from render.farm import Farm
from render.reading import read_table, read_toml
from render.settings import RenderSettings
from reward.gate import Gate
from reward.mix import Mix, build_mix
from reward.pool import Pool, load_pool, paint_pool, unpainted
from reward.settings import PoolSettings, RewardSettings, SubjectSettings

DEFAULT = Path("configs") / "laptop.toml"
OF_TRAINING = (
    *("run", "prompt", "policy", "warm_start", "lora", "sample", "train", "checkpoint", "probe"),
    *("gallery", "tracking", "publish"),
)


@dataclass(frozen=True)
class ScoringConfig:
    """The tables of a config that decide what a painting is worth."""

    render: RenderSettings = field(default_factory=RenderSettings)
    reward: RewardSettings = field(default_factory=RewardSettings)
    subject: SubjectSettings = field(default_factory=SubjectSettings)
    pool: PoolSettings = field(default_factory=PoolSettings)


def load(path: str | Path, overrides: Sequence[str] = ()) -> ScoringConfig:
    """Read those tables of a TOML file. Raises ConfigError in one line."""
    config: ScoringConfig = read_table(ScoringConfig, read_toml(Path(path), overrides), str(path), others=OF_TRAINING)
    return config


@contextmanager
def scorers(
    config: ScoringConfig,
    on_note: Callable[[str], None],
    on_painted: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[tuple[Mix, Pool]]:
    """The mix and the pool of a config. Browsers are started only where the pool holds sketches without an image, and
    are gone before the scorers are loaded.

    Raises UserError and FarmError in one line.
    """
    if unpainted(config.pool):
        with Farm(config.render) as farm:
            pool = paint_pool(config.pool, farm, on_painted)
    else:
        pool = load_pool(config.pool)
    mix = build_mix(config.reward, config.subject, Gate(config.render.methods), pool, on_note)
    try:
        yield mix, pool
    finally:
        mix.close()
