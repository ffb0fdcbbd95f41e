"""Settings of the reward: tables [reward], [reward.weights], [reward.length], [reward.coverage] and [pool].

The defaults are those of the small embedded policy; the published recipe's weights stand in its own config files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from render.errors import ConfigError
from render.settings import setting

WEIGHT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class WeightSettings:
    """Table [reward.weights]: the share of each term; the shares must sum to 1.

    A term of weight 0 is still scored and logged, but is not paid.
    """

    gate: float = setting(0.05, doc="paid to every sketch that passes the gate", ge=0, le=1)
    length: float = setting(0.05, doc="weight of the length term", ge=0, le=1)
    coverage: float = setting(0.05, doc="weight of the coverage term", ge=0, le=1)
    preference: float = setting(0.55, doc="weight of the preference scorer", ge=0, le=1)
    judge: float = setting(0.30, doc="weight of the pairwise judge", ge=0, le=1)

    def as_dict(self) -> dict[str, float]:
        return {entry.name: float(getattr(self, entry.name)) for entry in fields(self)}

    def validate(self) -> None:
        """ConfigError unless the weights sum to 1 within 1e-6."""
        total = sum(self.as_dict().values())
        if not abs(total - 1.0) <= WEIGHT_TOLERANCE:
            parts = " + ".join(f"{name} {value:g}" for name, value in self.as_dict().items())
            raise ConfigError(f"[reward.weights] must sum to 1, but {parts} = {total:.6g}")


@dataclass(frozen=True)
class LengthSettings:
    """Table [reward.length]: the recipe's ramp over the length of the sketch."""

    characters_per_token: float = setting(4.0, doc="characters of source that count as one token", gt=0)
    lowest: float = setting(150.0, doc="tokens under which the score is 0; the ramp starts here", ge=0)
    full: float = setting(3000.0, doc="tokens from which the score is 1", gt=0)
    highest: float = setting(6000.0, doc="tokens above which the score is 0", gt=0)

    def validate(self) -> None:
        """ConfigError unless lowest < full <= highest."""
        if not self.lowest < self.full <= self.highest:
            raise ConfigError(
                f"[reward.length] needs lowest < full <= highest, not {self.lowest:g}, {self.full:g}, {self.highest:g}"
            )


@dataclass(frozen=True)
class CoverageSettings:
    """Table [reward.coverage]: full score between `low` and `high`, linear down to 0 at `lowest` and `highest`."""

    lowest: float = setting(0.01, doc="paint coverage at which the score is still 0", ge=0, lt=1)
    low: float = setting(0.15, doc="paint coverage from which the score is 1", gt=0, lt=1)
    high: float = setting(0.55, doc="paint coverage up to which the score is 1", gt=0, lt=1)
    highest: float = setting(0.90, doc="paint coverage from which the score is 0 again", gt=0, le=1)

    def validate(self) -> None:
        """ConfigError unless lowest < low <= high < highest."""
        if not self.lowest < self.low <= self.high < self.highest:
            raise ConfigError(
                "[reward.coverage] needs lowest < low <= high < highest, not "
                f"{self.lowest:g}, {self.low:g}, {self.high:g}, {self.highest:g}"
            )


@dataclass(frozen=True)
class RewardSettings:
    """Table [reward]: which scorers are asked, and how the terms are weighted."""

    preference: str = setting(
        "stand_in",
        doc="preference scorer: stand_in (painting statistics, no download) or hpsv3",
        choices=("stand_in", "hpsv3"),
    )
    judge: str = setting(
        "stand_in",
        doc="pairwise judge: stand_in (distance to the loved paintings, no download) or vlm",
        choices=("stand_in", "vlm"),
    )
    weights: WeightSettings = field(default_factory=WeightSettings)
    length: LengthSettings = field(default_factory=LengthSettings)
    coverage: CoverageSettings = field(default_factory=CoverageSettings)

    def validate(self) -> None:
        """ConfigError where values that are each within bounds do not fit together."""
        self.weights.validate()
        self.length.validate()
        self.coverage.validate()


@dataclass(frozen=True)
class PoolSettings:
    """Table [pool]: the paintings that a candidate is compared with."""

    source: str = setting("embedded", doc='"embedded", a folder, or a dataset of the Hugging Face Hub ("org/name")')
    revision: str = setting("", doc="commit of the Hub dataset; needed there, without effect elsewhere")
    references: int = setting(4, doc="paintings of the pool that a step compares with", ge=1, le=64)
