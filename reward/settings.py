"""Settings of the reward: tables [reward], [reward.weights], [reward.length], [reward.coverage], [reward.hpsv3],
[reward.vlm], [subject] and [pool].

The defaults are those of the small embedded policy; the published recipe's weights stand in its own config files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from render.errors import ConfigError
from render.settings import setting

WEIGHT_TOLERANCE = 1e-6

COMPOSITION = """\
- One flower, large, about the middle of a sheet of cream paper. Warm pinks, corals, yellows and magentas for the bloom,
  greens for leaves and stem.
- Five petals or so that reach 200 to 240 units from the heart. Paint each two or three times: a large pale wash first,
  then smaller and stronger ones, small dark ones near the heart.
- 15 to 30 filled shapes in all, each an outline of many vertices with a living edge.
- Opacity 150 or more, 180 to 230 on the petals; bleed 0.2 to 0.3.
- Let washes overlap and soften; leave paper to breathe around the flower.
"""
CRITERIA = """\
- Better: soft bleeds; washes laid over one another so that the lower ones show through; edges that dissolve into the
  paper; a deliberate composition that uses the sheet.
- Worse: opaque, muddy blobs; an even scribble all over; hard, flat edges; a sheet that is nearly empty.
"""


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
class Hpsv3Settings:
    """Table [reward.hpsv3]: the HPSv3 scorer, in effect with [reward] preference = "hpsv3"."""

    weights: str = setting("MizzenAI/HPSv3", doc="repository on the Hub, or the path of HPSv3.safetensors")
    revision: str = setting("4f81e3e09edd82fe3c5f636444c721b592a735ca", doc="commit of the weights on the Hub")
    base: str = setting(
        "Qwen/Qwen2-VL-7B-Instruct", doc="where config.json and the tokenizer come from: a repository or a folder"
    )
    base_revision: str = setting("eed13092ef92e448dd6875b2a00151bd3f7db0ac", doc="commit of the base on the Hub")
    device: str = setting("auto", doc="where the scorer lives", choices=("auto", "cpu", "cuda"))
    dtype: str = setting(
        "auto", doc="auto = bfloat16 on a GPU, float32 on a CPU", choices=("auto", "float32", "bfloat16")
    )
    quantization: str = setting(
        "none",
        doc="of the language model, by bitsandbytes; the head stays in float32",
        choices=("none", "8bit", "4bit"),
    )
    batch_size: int = setting(4, doc="paintings in one forward pass, at most", ge=1)
    normalise: str = setting(
        "sigmoid",
        doc="mu -> 0..1: sigmoid(mu / temperature), its mean over the pool with mu - mu_ref, or clip: linear",
        choices=("sigmoid", "pool", "clip"),
    )
    temperature: float = setting(4.0, doc="of sigmoid and pool; the recipe's is 4", gt=0)
    lowest: float = setting(-10.0, doc="clip: mu that scores 0")
    highest: float = setting(15.0, doc="clip: mu that scores 1")

    def validate(self) -> None:
        """ConfigError unless lowest < highest."""
        if not self.lowest < self.highest:
            raise ConfigError(f"[reward.hpsv3] needs lowest < highest, not {self.lowest:g}, {self.highest:g}")


@dataclass(frozen=True)
class VlmSettings:
    """Table [reward.vlm]: the vision-language judge, in effect with [reward] judge = "vlm"."""

    backend: str = setting(
        "providers",
        doc="providers (Hugging Face), server (OpenAI-compatible: vLLM, SGLang, llama.cpp), transformers (in here)",
        choices=("providers", "server", "transformers"),
    )
    model: str = setting("Qwen/Qwen3-VL-30B-A3B-Instruct", doc="repository, folder, or the server's name of the model")
    revision: str = setting("", doc="transformers: commit of the model on the Hub; empty = main")
    provider: str = setting("novita", doc="providers: the one that is asked; scores of two are not comparable")
    base_url: str = setting("", doc="server: address up to and with /v1")
    key_variable: str = setting("HF_TOKEN", doc="environment variable that holds the token or key")
    mode: str = setting(
        "verdict",
        doc="verdict (the recipe: winner and reason as JSON) or soft (log-probabilities of one letter)",
        choices=("verdict", "soft"),
    )
    temperature: float = setting(1.0, doc="soft: P = sigmoid(logit / temperature)", gt=0)
    image_size: int = setting(512, doc="longer side of the images that are sent, in pixels", ge=64, le=2048)
    concurrency: int = setting(8, doc="calls in flight, at most", ge=1, le=256)
    timeout_s: float = setting(60.0, doc="seconds a call may take", gt=0)
    tries: int = setting(5, doc="calls for one answer, at most, with growing pauses between", ge=1, le=20)
    outage_after: int = setting(4, doc="answers in a row given up after which the judge counts as down", ge=1)
    on_outage: str = setting(
        "pause", doc="pause: the run waits and goes on by itself; stop: it saves and stops", choices=("pause", "stop")
    )
    pause_s: float = setting(30.0, doc="pause: seconds between two looks whether the judge is back", gt=0)
    price_in: float = setting(0.0, doc="money for a million tokens in; 0 = not counted", ge=0)
    price_out: float = setting(0.0, doc="money for a million tokens out; 0 = not counted", ge=0)
    cache: str = setting(".cache/judge.sqlite", doc="file that keeps every answer")
    device: str = setting("auto", doc="transformers: where the judge lives", choices=("auto", "cpu", "cuda"))
    dtype: str = setting(
        "auto", doc="transformers: auto = bfloat16 on a GPU, float32 on a CPU", choices=("auto", "float32", "bfloat16")
    )
    quantization: str = setting(
        "none",
        doc="transformers: by bitsandbytes; fused experts stay as they are",
        choices=("none", "8bit", "4bit"),
    )

    def validate(self) -> None:
        """ConfigError where the back end lacks what it needs."""
        if self.backend == "server" and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f'[reward.vlm] backend = "server" needs base_url = "http://HOST:PORT/v1", not "{self.base_url}"'
            )
        if self.backend == "providers" and self.provider in ("", "auto"):
            raise ConfigError(
                f'[reward.vlm] provider is "{self.provider}": name one, for instance "novita"; '
                "which one answers is part of the reward"
            )


@dataclass(frozen=True)
class SubjectSettings:
    """Table [subject]: what is painted, and in which words the policy, the judge and HPSv3 are told."""

    name: tuple[str, ...] | str = setting(
        "a peach hibiscus in loose watercolour",
        doc="what the policy is asked to paint; of a list, each group of a step has one",
    )
    order: str = setting(
        "in_turn", doc="of a list: in_turn, or drawn by the run's seed in each step", choices=("in_turn", "drawn")
    )
    composition: str = setting(COMPOSITION, doc='how to compose; the last part of the "full" system prompt')
    criteria: str = setting(CRITERIA, doc="what the judge prefers")
    preference_text: str = setting("a loose watercolour flower", doc="the text that HPSv3 scores the painting for")

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if isinstance(self.name, str) else self.name

    def validate(self) -> None:
        """ConfigError where a text is missing."""
        if not self.names or not all(name.strip() for name in self.names):
            raise ConfigError("[subject] name is empty; say what is to be painted")
        for key in ("criteria", "preference_text"):
            if not getattr(self, key).strip():
                raise ConfigError(f"[subject] {key} is empty")


@dataclass(frozen=True)
class RewardSettings:
    """Table [reward]: which scorers are asked, and how the terms are weighted."""

    task: str = setting(
        "paint",
        doc="paint: the scorers below; fills: the control task, count brush.fill( in the text and paint nothing",
        choices=("paint", "fills"),
    )
    target_fills: int = setting(15, doc="fills: the count that is worth 1; 10 beside it are worth 0.37", ge=0)
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
    hpsv3: Hpsv3Settings = field(default_factory=Hpsv3Settings)
    vlm: VlmSettings = field(default_factory=VlmSettings)

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
    reference_policy: str = setting(
        "half_and_half",
        doc="which ones: half_and_half (love, okay), adaptive (beaten 25-75% of the time) or easy_to_hard",
        choices=("half_and_half", "adaptive", "easy_to_hard"),
    )
    love_floor: float = setting(
        0.25, doc="adaptive: share of the references that is of tier love, at least", ge=0, le=1
    )
