"""Log-probabilities, advantages and masks -> the policy loss of one micro-batch, and its statistics.

    rho   = exp(logpi - logpi_old)                           importance ratio of each token, or with level "sequence"
    rho   = exp(mean over the sequence's tokens of the same) one per sequence (GSPO, Zheng et al. 2025)
    l     = -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A) + beta KL          (PPO, Schulman et al. 2017)
    KL    with d = logpi_ref - logpi (Schulman, "Approximating KL Divergence"):
          k1 = -d,  k2 = d^2 / 2,  k3 = exp(d) - d - 1; times rho when kl_times_ratio

Reduction over the window, which is all micro-batches of one optimizer step:
    dapo     sum of l over tokens / tokens of the window (default; Yu et al. 2025)
    grpo     mean over the window's sequences of each sequence's token mean (Shao et al. 2024)
    dr_grpo  sum of l over tokens / (sequences of the window x max_completion_length) (Liu et al. 2025)
    bnpo     mean over micro-batches of the micro-batch's own token mean, as TRL does it

The losses of the micro-batches add up to the loss of the window: call backward on each without dividing further.
`denominators` is called once on the whole window before the first backward; therefore the gradient of dapo, grpo and
dr_grpo does not depend on how the window is cut. bnpo depends on the cut by its definition (over the whole window it
would be dapo); it is there for comparison with runs that used it.

Unscored rollouts (reward None) leave the loss: their tokens are out of the mask and out of every denominator. TRL gives
them advantage 0 but counts their tokens; `count_unscored=True` does the same, for comparisons with TRL.
With mask_truncated, completions cut at the length limit are out of the mask and so out of the token denominators; as
in TRL they still count as sequences of grpo and dr_grpo.

Left out: dual clip, cispo and other surrogates, entropy bonus, correction for samples from another engine.

Shapes: _B sequences, _T completion tokens (right-padded to the longest).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import torch
from torch import Tensor

LOSS_TYPES = ("dapo", "grpo", "bnpo", "dr_grpo")
RATIO_LEVELS = ("token", "sequence")
KL_ESTIMATORS = ("k1", "k2", "k3")


@dataclass(frozen=True)
class Objective:
    """The choices that define the loss of one token and its average; ValueError when one of them is out of bounds."""

    loss_type: str = "dapo"
    clip_low: float = 0.2
    clip_high: float = 0.28
    importance_sampling_level: str = "token"
    beta: float = 0.0  # weight of the KL term; 0 = no reference model at all
    kl_estimator: str = "k3"
    kl_times_ratio: bool = False  # on-policy: the same value, another gradient

    def __post_init__(self) -> None:
        for name, allowed in (
            ("loss_type", LOSS_TYPES),
            ("importance_sampling_level", RATIO_LEVELS),
            ("kl_estimator", KL_ESTIMATORS),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}: allowed are {', '.join(allowed)}")
        if not (0 <= self.clip_low <= 1 and self.clip_high >= 0 and self.beta >= 0):
            raise ValueError(
                f"clip_low is {self.clip_low}, clip_high {self.clip_high}, beta {self.beta}: "
                "clip_low lies in 0..1, the others are not negative"
            )


@dataclass(frozen=True)
class Denominators:
    """What one window's loss is divided by."""

    tokens: int
    sequences: int
    micro_batches: int
    max_completion_length: int


@dataclass(frozen=True)
class LossStats:
    """Sums and counts of one or more micro-batches; add them up with +, then take `means`.

    `ratios` counts what has a ratio of its own: tokens, or sequences with level "sequence". low: ratio under the lower
    bound with A < 0; high: ratio over the upper bound with A > 0 (in both the gradient is cut off).
    """

    tokens: float = 0.0
    ratios: float = 0.0
    ratio: float = 0.0
    absolute_log_ratio: float = 0.0
    clipped_low: float = 0.0
    clipped_high: float = 0.0
    kl: float = 0.0
    kl_tokens: float = 0.0
    entropy: float = 0.0
    entropy_tokens: float = 0.0

    def __add__(self, other: LossStats) -> LossStats:
        return LossStats(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def means(self) -> dict[str, float | None]:
        """TRL's metric names where the meaning is TRL's; None where nothing was counted."""

        def mean(total: float, count: float) -> float | None:
            return total / count if count else None

        return {
            "clip_ratio/low_mean": mean(self.clipped_low, self.ratios),
            "clip_ratio/high_mean": mean(self.clipped_high, self.ratios),
            "clip_ratio/region_mean": mean(self.clipped_low + self.clipped_high, self.ratios),
            "ratio_mean": mean(self.ratio, self.ratios),
            "log_ratio_abs_mean": mean(self.absolute_log_ratio, self.ratios),
            "kl": mean(self.kl, self.kl_tokens),
            "entropy": mean(self.entropy, self.entropy_tokens),
        }


def completion_mask(lengths_B: Sequence[int] | Tensor, max_length: int) -> Tensor:
    """[B, T] bool, True on a completion's own tokens; a length includes the first end-of-sequence token.

    Made from lengths only: the id of the padding may be the id of the end of sequence.
    """
    lengths = torch.as_tensor(lengths_B, dtype=torch.long)
    if lengths.numel() and (int(lengths.min()) < 0 or int(lengths.max()) > max_length):
        raise ValueError(f"completion lengths {lengths.tolist()} do not lie in 0..{max_length}")
    return torch.arange(max_length, device=lengths.device) < lengths[:, None]


def loss_mask(
    lengths_B: Sequence[int],
    max_length: int,
    *,
    scored_B: Sequence[bool],
    truncated_B: Sequence[bool],
    mask_truncated: bool = False,
    count_unscored: bool = False,
) -> Tensor:
    """[B, T] bool, True on the tokens that are trained on and counted.

    That is the completion mask without unscored rollouts (unless count_unscored) and, with mask_truncated, without
    completions that were cut at the length limit.
    """
    rows_B = [
        (scored or count_unscored) and not (truncated and mask_truncated)
        for _, scored, truncated in zip(lengths_B, scored_B, truncated_B, strict=True)
    ]
    return completion_mask(lengths_B, max_length) & torch.tensor(rows_B, dtype=torch.bool)[:, None]


def entropy_threshold(entropies_N: Tensor, quantile: float) -> float:
    """The entropy that the most uncertain share `quantile` of a window's completion tokens reaches or exceeds.

    entropies_N: entropy of every trained token of the window. From a sort: torch.quantile refuses large tensors.
    Source: Wang et al. 2025, "Beyond the 80/20 rule"; TRL's top_entropy_quantile.
    """
    if not 0 < quantile <= 1:
        raise ValueError(f"quantile is {quantile}: above 0 and at most 1")
    if quantile == 1 or entropies_N.numel() == 0:
        return float("-inf")
    ordered = entropies_N.float().sort(descending=True).values
    return ordered[max(0, math.ceil(quantile * ordered.numel()) - 1)].item()


def denominators(
    mask: Tensor,
    *,
    scored_B: Sequence[bool],
    micro_batches: int,
    max_completion_length: int,
    count_unscored: bool = False,
) -> Denominators:
    """Denominators of a window, from the loss masks and flags of ALL its rollouts, before its first backward.

    mask: of any shape, so that micro-batches of different width can be flattened and put one after another.
    """
    if micro_batches < 1 or max_completion_length < 1:
        raise ValueError(f"micro_batches is {micro_batches}, max_completion_length {max_completion_length}: at least 1")
    return Denominators(
        tokens=int(mask.sum()),
        sequences=len(scored_B) if count_unscored else sum(scored_B),
        micro_batches=micro_batches,
        max_completion_length=max_completion_length,
    )


def policy_loss(
    logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    window: Denominators,
    objective: Objective,
    *,
    old_logprobs_BT: Tensor | None = None,
    reference_logprobs_BT: Tensor | None = None,
    entropy_BT: Tensor | None = None,
    taught_BT: Tensor | None = None,
) -> tuple[Tensor, LossStats]:
    """This micro-batch's share of the window's loss (a scalar with gradient), and its statistics.

    logprobs_BT: log-probability of each completion token under the policy in training, at the sampling temperature.
    mask_BT: the micro-batch's rows of `loss_mask`. What stands outside the mask may be anything finite or not.
    old_logprobs_BT: of the policy that sampled; None = the same policy, so that every ratio is exactly 1.
    reference_logprobs_BT: needed when beta > 0, refused otherwise. entropy_BT: only passes into the statistics.
    taught_BT: tokens that the policy term is kept on (see `entropy_threshold`), None = all; all others stay counted.
    A window in which nothing is trained on gives 0 with gradient 0, never NaN.
    """
    if (objective.beta > 0) != (reference_logprobs_BT is not None):
        raise ValueError(f"beta is {objective.beta}: reference log-probabilities are given exactly when beta > 0")
    if not mask_BT.shape == logprobs_BT.shape or advantages_B.shape != mask_BT.shape[:1]:
        raise ValueError(
            f"shapes differ: log-probabilities {tuple(logprobs_BT.shape)}, mask {tuple(mask_BT.shape)}, "
            f"advantages {tuple(advantages_B.shape)}"
        )
    # Replaced before any exp, not multiplied by 0 after it: infinity times 0 is NaN, in the gradient too.
    logprobs_BT = logprobs_BT.float().masked_fill(~mask_BT, 0.0)
    old_BT = logprobs_BT.detach() if old_logprobs_BT is None else old_logprobs_BT.float().masked_fill(~mask_BT, 0.0)
    advantages_B1 = advantages_B.to(logprobs_BT)[:, None]
    tokens_B = mask_BT.sum(-1)

    log_ratio = logprobs_BT - old_BT
    ratio_mask = mask_BT
    if objective.importance_sampling_level == "sequence":
        log_ratio = (log_ratio.sum(-1) / tokens_B.clamp(min=1))[:, None]
        ratio_mask = (tokens_B > 0)[:, None]
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - objective.clip_low, 1 + objective.clip_high)
    loss_BT = -torch.min(ratio * advantages_B1, clipped * advantages_B1)
    if taught_BT is not None:
        loss_BT = loss_BT.expand_as(mask_BT).masked_fill(~taught_BT, 0.0)

    kl_BT: Tensor | None = None
    if reference_logprobs_BT is not None:
        kl_BT = _kl(reference_logprobs_BT.float().masked_fill(~mask_BT, 0.0) - logprobs_BT, objective.kl_estimator)
        if objective.kl_times_ratio:
            kl_BT = kl_BT * ratio
        loss_BT = loss_BT + objective.beta * kl_BT

    loss_B = loss_BT.expand_as(mask_BT).masked_fill(~mask_BT, 0.0).sum(-1)
    if objective.loss_type == "dapo":
        loss = loss_B.sum() / max(window.tokens, 1)
    elif objective.loss_type == "grpo":
        loss = (loss_B / tokens_B.clamp(min=1)).sum() / max(window.sequences, 1)
    elif objective.loss_type == "dr_grpo":
        loss = loss_B.sum() / (max(window.sequences, 1) * window.max_completion_length)
    else:
        loss = loss_B.sum() / tokens_B.sum().clamp(min=1) / window.micro_batches

    with torch.no_grad():
        low = (ratio < 1 - objective.clip_low) & (advantages_B1 < 0)
        high = (ratio > 1 + objective.clip_high) & (advantages_B1 > 0)
        tokens = mask_BT.sum()
        nothing = torch.zeros((), device=mask_BT.device)
        sums = (
            tokens,
            ratio_mask.sum(),
            _masked_sum(ratio, ratio_mask),
            _masked_sum(log_ratio.abs(), ratio_mask),
            _masked_sum(low, ratio_mask),
            _masked_sum(high, ratio_mask),
            nothing if kl_BT is None else _masked_sum(kl_BT, mask_BT),
            nothing if kl_BT is None else tokens,
            nothing if entropy_BT is None else _masked_sum(entropy_BT, mask_BT),
            nothing if entropy_BT is None else tokens,
        )
        # One transfer from the device instead of ten.
        return loss, LossStats(*torch.stack([value.double() for value in sums]).tolist())


def _kl(d_BT: Tensor, estimator: str) -> Tensor:
    """Estimate of KL(pi || pi_ref) for each token, from d = logpi_ref - logpi."""
    if estimator == "k1":
        return -d_BT
    if estimator == "k2":
        return d_BT.square() / 2
    return torch.expm1(d_BT) - d_BT


def _masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    return values.float().masked_fill(~mask, 0.0).sum()
