"""The config of a run: one dataclass for each table, read strictly by `render.reading`.

Checks that span several keys are in `_check_together`.
Torch is not imported here, so that `--check` starts quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from grpo.background import GallerySettings
from grpo.publish.settings import PublishSettings
from grpo.small import WarmStartSettings
from grpo.tracking import TrackingSettings
from render.errors import ConfigError
from render.reading import flatten, read_table, read_toml
from render.settings import RenderSettings, setting
from reward.settings import PoolSettings, RewardSettings, SubjectSettings


@dataclass(frozen=True)
class RunSettings:
    """Table [run]: the length of the run, its seed and its folder."""

    steps: int = setting(60, doc="training steps; each samples, paints, scores and trains once", ge=1)
    seed: int = setting(0, doc="everything random in the run derives from it", ge=0)
    folder: str = setting("runs", doc="folder that holds the runs")
    name: str = setting("", doc="name of the run's folder; empty = name of the config file")
    max_unscored_steps: int = setting(
        3, doc="steps in a row without one scored rollout after which the run saves and stops", ge=1
    )


@dataclass(frozen=True)
class PromptSettings:
    """Table [prompt]: how the policy is asked; what for is [subject]."""

    system: str = setting(
        "full", doc='"full" (for a large model), "short" (for the small one) or the path of a text file'
    )


@dataclass(frozen=True)
class PolicySettings:
    """Table [policy]: the model that writes sketches."""

    model: str = setting("small", doc='"small" (embedded, warm-started here), a folder, or a model on the Hub')
    revision: str = setting("", doc="commit of the model on the Hub; empty = main")
    device: str = setting("auto", doc="where the policy lives", choices=("auto", "cpu", "cuda"))
    dtype: str = setting(
        "auto", doc="auto = bfloat16 on a GPU, float32 on a CPU", choices=("auto", "float32", "bfloat16")
    )
    quantization: str = setting(
        "none",
        doc="frozen linear layers in 8 or 4 bits (bitsandbytes); head, vision and fused experts stay whole",
        choices=("none", "8bit", "4bit"),
    )
    threads: int = setting(1, doc="torch threads while browsers paint on the same cores", ge=1, le=256)


@dataclass(frozen=True)
class LoraSettings:
    """Table [lora]: the adapter. `enabled = false` trains every weight."""

    enabled: bool = setting(True, doc="train a low-rank adapter and leave the model's own weights alone")
    rank: int = setting(16, doc="rank of the adapter", ge=1, le=1024)
    alpha: int = setting(32, doc="scale of the adapter is alpha / rank", ge=1)
    dropout: float = setting(0.0, doc="dropout in the adapter; above 0 the ratio is noisy", ge=0, lt=1)
    targets: tuple[str, ...] | str = setting(
        "all-linear", doc='"all-linear" (every linear layer but head, router and vision) or a list of layer names'
    )
    experts: bool = setting(False, doc="adapt the routed experts too: some 40 times the weights, about twice the time")


@dataclass(frozen=True)
class SampleSettings:
    """Table [sample]: how completions are drawn. All of it is passed to the sampler, none is left to a checkpoint."""

    group_size: int = setting(8, doc="rollouts that share a prompt; the group's mean is the baseline", ge=2)
    prompts_per_step: int = setting(1, doc="groups, hence prompts, in a step", ge=1)
    rows_at_once: int = setting(0, doc="rollouts sampled in one batch, at most; 0 = all of the step", ge=0)
    cache: str = setting(
        "dynamic",
        doc="keys and values: dynamic grows; static has its whole length at once, and a GPU compiles the decoding step",
        choices=("dynamic", "static"),
    )
    max_completion_length: int = setting(8192, doc="tokens after which a completion is cut", ge=1)
    temperature: float = setting(1.0, doc="the same in sampling and in the log-probabilities", gt=0)
    top_p: float = setting(1.0, doc="nucleus; shapes sampling only", gt=0, le=1)
    top_k: int = setting(0, doc="0 = off; shapes sampling only", ge=0)
    min_p: float = setting(0.0, doc="0 = off; shapes sampling only", ge=0, lt=1)
    repetition_penalty: float = setting(1.0, doc="1 = off; shapes sampling only", gt=0)


@dataclass(frozen=True)
class TrainSettings:
    """Table [train]: the GRPO update."""

    loss_type: str = setting(
        "dapo", doc="how tokens are averaged (grpo/loss.py)", choices=("dapo", "grpo", "bnpo", "dr_grpo")
    )
    scale_rewards: str = setting(
        "none",
        doc="advantage divided by nothing, the group's or the batch's deviation",
        choices=("none", "group", "batch"),
    )
    importance_sampling_level: str = setting(
        "token", doc="one ratio a token or a sequence", choices=("token", "sequence")
    )
    clip_low: float = setting(0.2, doc="lower clip of the ratio, 1 - clip_low", ge=0, lt=1)
    clip_high: float = setting(0.28, doc="upper clip of the ratio, 1 + clip_high", ge=0)
    num_iterations: int = setting(1, doc="updates on the same rollouts", ge=1)
    micro_batch_size: int = setting(
        1,
        doc="rollouts in one forward and backward pass, at most; 0 = as many as a trial at the start shows to fit",
        ge=0,
    )
    top_entropy_quantile: float = setting(
        1.0, doc="share of the tokens, the most uncertain ones, that the policy term is kept on; 1 = all", gt=0, le=1
    )
    beta: float = setting(0.0, doc="weight of the KL term; 0 = no reference", ge=0)
    kl_estimator: str = setting("k3", doc="estimator of the KL term", choices=("k1", "k2", "k3"))
    kl_times_ratio: bool = setting(False, doc="multiply k3 by the ratio, as TRL 1.16 does by default")
    mask_truncated: bool = setting(False, doc="leave completions that were cut out of the loss")
    learning_rate: float = setting(5e-5, doc="peak of the schedule", gt=0, le=1)
    schedule: str = setting("constant", doc="after the warm-up", choices=("constant", "linear", "cosine"))
    warmup_steps: int = setting(5, doc="updates over which the rate rises from 0", ge=0)
    optimizer: str = setting("adamw", doc="adamw, or bitsandbytes' 8-bit adamw8bit", choices=("adamw", "adamw8bit"))
    weight_decay: float = setting(0.0, doc="decoupled weight decay", ge=0)
    adam_beta1: float = setting(0.9, doc="decay of the first moment", ge=0, lt=1)
    adam_beta2: float = setting(0.999, doc="decay of the second moment", ge=0, lt=1)
    max_grad_norm: float = setting(1.0, doc="gradient norm above which it is scaled down; 0 = off", ge=0)
    gradient_checkpointing: bool = setting(False, doc="recompute activations in the backward pass")
    logprob_chunk: int = setting(512, doc="tokens projected on the vocabulary at a time", ge=1)
    logprob_keep_mb: int = setting(
        128, doc="MiB of probabilities kept from forward to backward pass; above it they are computed again", ge=0
    )


@dataclass(frozen=True)
class CheckpointSettings:
    """Table [checkpoint]: what a run can be resumed from."""

    every: int = setting(1, doc="steps between two checkpoints; the last step always saves", ge=1)
    keep: int = setting(2, doc="checkpoints kept; older ones are removed", ge=1)


@dataclass(frozen=True)
class ProbeSettings:
    """Table [probe]: samples with fixed seeds from before the first step and after the last one, side by side."""

    samples: int = setting(0, doc="sketches of each subject, painted before and after the run; 0 = off", ge=0, le=1000)


@dataclass(frozen=True)
class Config:
    """The whole file. `path` is where it came from, for messages."""

    run: RunSettings = field(default_factory=RunSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    subject: SubjectSettings = field(default_factory=SubjectSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    warm_start: WarmStartSettings = field(default_factory=WarmStartSettings)
    lora: LoraSettings = field(default_factory=LoraSettings)
    sample: SampleSettings = field(default_factory=SampleSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    render: RenderSettings = field(default_factory=RenderSettings)
    reward: RewardSettings = field(default_factory=RewardSettings)
    pool: PoolSettings = field(default_factory=PoolSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    gallery: GallerySettings = field(default_factory=GallerySettings)
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    publish: PublishSettings = field(default_factory=PublishSettings)

    @property
    def rollouts_per_step(self) -> int:
        return self.sample.group_size * self.sample.prompts_per_step


# --- reading ----------------------------------------------------------------------------------------------------


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file, apply `table.key=value` overrides, and check everything.

    Raises ConfigError with one line: file, table, key, what is wrong, what is allowed.
    """
    data = read_toml(Path(path), overrides)
    config = read_table(Config, data, str(path))
    _check_together(config, str(path))
    return config


def dump(config: Config) -> str:
    """The resolved config as TOML; `load` reads it back to an equal Config."""
    return tomli_w.dumps(_plain(asdict(config)))


def differences(old: Config, new: Config) -> list[str]:
    """Dotted names of the settings in which two configs differ."""
    flat_old, flat_new = flatten(old), flatten(new)
    return [key for key in flat_old if flat_old[key] != flat_new.get(key)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value


def _check_together(config: Config, file: str) -> None:
    """Rules that span several keys."""
    sample = config.sample

    def refuse(text: str) -> None:
        raise ConfigError(f"{file}: {text}")

    if config.train.beta > 0 and not config.lora.enabled:
        refuse("[train] beta above 0 needs [lora] enabled = true: the reference is the model with its adapter off")
    if config.policy.quantization != "none" and not config.lora.enabled:
        refuse("[policy] quantization needs [lora] enabled = true: weights in 8 or 4 bits cannot be trained")
    if config.lora.experts and not config.lora.enabled:
        refuse("[lora] experts = true needs enabled = true; without an adapter the experts are trained anyway")
    if config.lora.experts and config.lora.dropout > 0:
        refuse("[lora] experts = true needs dropout = 0: peft has no dropout on fused experts")
    if sample.rows_at_once > config.rollouts_per_step:
        refuse(
            f"[sample] rows_at_once must be at most group_size x prompts_per_step ({config.rollouts_per_step}), "
            f"not {sample.rows_at_once}"
        )
    if config.policy.device == "cpu" and config.policy.dtype == "bfloat16":
        refuse('[policy] dtype "bfloat16" needs a GPU; on device "cpu" use "float32" or "auto"')


def notes(config: Config) -> list[str]:
    """Options that have no effect, or an effect that surprises, in this configuration: one line each."""
    sample, train, found = config.sample, config.train, []
    truncated = sample.top_k > 0 or sample.top_p < 1 or sample.min_p > 0 or sample.repetition_penalty != 1
    if truncated and (train.num_iterations > 1 or train.beta > 0):
        found.append(
            "top_k, top_p, min_p or repetition_penalty shape sampling only: with several iterations or beta > 0 "
            "ratio and KL are those of the full distribution"
        )
    if train.num_iterations == 1 and (train.clip_low, train.clip_high) != (
        TrainSettings.clip_low,
        TrainSettings.clip_high,
    ):
        found.append("clip_low and clip_high have no effect with num_iterations = 1: the ratio is exactly 1")
    if train.beta == 0 and train.kl_estimator != "k3":
        found.append("kl_estimator has no effect with beta = 0")
    if train.kl_times_ratio and (train.beta == 0 or train.kl_estimator != "k3"):
        found.append("kl_times_ratio has no effect unless beta > 0 and kl_estimator is k3")
    if config.lora.dropout > 0:
        found.append("lora dropout above 0: sampling and training see different networks")
    if config.lora.experts:
        found.append(
            "[lora] experts = true: on the 35B policy 945 million weights instead of 22, some 15 GB more for gradients "
            "and moments, and every pass builds the full update of each expert: about twice the time"
        )
    if config.policy.quantization != "none" and config.policy.model == "small":
        found.append("[policy] quantization has no effect on the small policy")
    elif config.policy.quantization != "none":
        found.append(
            "[policy] quantization leaves fused experts, head and vision as they are: a dense model shrinks, of the "
            "35B policy's 69 GB only 3 are in layers that do"
        )
    if config.policy.model != "small" and config.warm_start != type(config.warm_start)():
        found.append('[warm_start] has no effect unless [policy] model is "small"')
    if config.reward.task == "fills":
        found.append("[reward] task is fills: nothing is painted; [render], [pool] and the scorers have no effect")
    elif config.reward.target_fills != RewardSettings.target_fills:
        found.append('[reward] target_fills has no effect unless task is "fills"')
    if config.subject.order != "in_turn" and len(config.subject.names) == 1:
        found.append("[subject] order has no effect with one name")
    if config.prompt.system != "full" and config.subject.composition != SubjectSettings().composition:
        found.append('[subject] composition has no effect unless [prompt] system is "full"')
    return found
