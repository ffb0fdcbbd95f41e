"""The loss against numbers computed by hand; masks; independence of the cut into micro-batches."""

import math
from dataclasses import astuple
from typing import Any

import pytest
import torch

from grpo.loss import (
    LOSS_TYPES,
    Denominators,
    LossStats,
    Objective,
    completion_mask,
    denominators,
    loss_mask,
    policy_loss,
)

LENGTHS = (3, 1, 4, 2, 4, 1, 2, 3)
ADVANTAGES = (1.0, -2.0, 0.5, 1.5, -1.0, 0.25, 3.0, -0.75)


def window_of(lengths: Any, micro_batches: int = 1, **options: Any) -> Denominators:
    flags = {"scored_B": [True] * len(lengths), "truncated_B": [False] * len(lengths)} | options
    sizes = {"micro_batches": micro_batches, "max_completion_length": flags.pop("max_completion_length", 4)}
    mask = loss_mask(lengths, max(lengths), **flags)
    return denominators(mask, scored_B=flags["scored_B"], count_unscored=flags.get("count_unscored", False), **sizes)


def drawn(seed: int, scale: float = 0.3) -> torch.Tensor:
    return -1 + scale * torch.randn(8, 4, generator=torch.Generator().manual_seed(seed))


def gradient(
    objective: Objective, cuts: list[list[int]], scored: list[bool] | None = None, **window_options: Any
) -> tuple[float, torch.Tensor, LossStats]:
    """Loss, gradient and statistics of the eight rollouts, cut into the micro-batches given."""
    scored = scored or [True] * 8
    logprobs = drawn(1).requires_grad_()
    old, reference = drawn(2), drawn(3)
    window = window_of(LENGTHS, len(cuts), scored_B=scored, **window_options)
    total, stats = 0.0, LossStats()
    for rows in cuts:
        longest = max(LENGTHS[row] for row in rows)  # a micro-batch is padded to its own longest row
        loss, part = policy_loss(
            logprobs[rows, :longest],
            torch.tensor(ADVANTAGES)[rows],
            loss_mask(
                [LENGTHS[row] for row in rows],
                longest,
                scored_B=[scored[row] for row in rows],
                truncated_B=[False] * len(rows),
            ),
            window,
            objective,
            old_logprobs_BT=old[rows, :longest],
            reference_logprobs_BT=reference[rows, :longest] if objective.beta else None,
            entropy_BT=-old[rows, :longest],
        )
        loss.backward()
        total, stats = total + loss.item(), stats + part
    assert logprobs.grad is not None
    return total, logprobs.grad, stats


# --- by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss_type", "expected"),
    [
        # Two rollouts of 3 and 1 tokens, ratio 1, A = 2 and -1: sums of -A over tokens are -6 and +1.
        ("dapo", (-6 + 1) / 4),
        ("grpo", (-2 + 1) / 2),
        ("bnpo", (-6 + 1) / 4),
        ("dr_grpo", (-6 + 1) / (2 * 8)),
    ],
)
def test_reduction_by_hand(loss_type: str, expected: float) -> None:
    logprobs = torch.zeros(2, 3, requires_grad=True)
    window = window_of([3, 1], max_completion_length=8)
    loss, stats = policy_loss(
        logprobs, torch.tensor([2.0, -1.0]), completion_mask([3, 1], 3), window, Objective(loss_type=loss_type)
    )
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    assert stats.means()["ratio_mean"] == 1.0
    loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad[1, 1:].tolist() == [0.0, 0.0]
    assert logprobs.grad.sum().item() == pytest.approx(expected, rel=1e-6)  # d(-rho A)/dlogpi = -A at rho = 1


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.5, 1.0, -1.3, 0.0),  # over 1 + clip_high with A > 0: held at the bound, no gradient
        (1.25, 1.0, -1.25, -1.25),  # inside the upper bound only because it is wider than the lower
        (0.5, 1.0, -0.5, -0.5),
        (1.5, -1.0, 1.5, 1.5),
        (0.5, -1.0, 0.8, 0.0),  # under 1 - clip_low with A < 0
        (0.9, -1.0, 0.9, 0.9),
    ],
)
def test_clip_by_hand(ratio: float, advantage: float, loss: float, slope: float) -> None:
    logprobs = torch.tensor([[math.log(ratio)]], requires_grad=True)
    found, stats = policy_loss(
        logprobs,
        torch.tensor([advantage]),
        completion_mask([1], 1),
        window_of([1]),
        Objective(clip_low=0.2, clip_high=0.3),
        old_logprobs_BT=torch.zeros(1, 1),
    )
    found.backward()
    assert found.item() == pytest.approx(loss, rel=1e-6)
    assert logprobs.grad is not None
    assert logprobs.grad.item() == pytest.approx(slope, rel=1e-6)
    means = stats.means()
    assert means["clip_ratio/low_mean"] == float(ratio < 0.8 and advantage < 0)
    assert means["clip_ratio/high_mean"] == float(ratio > 1.3 and advantage > 0)
    assert means["clip_ratio/region_mean"] == float(slope == 0)


@pytest.mark.parametrize(
    ("estimator", "times_ratio", "kl", "slope"),
    [
        # d = logpi_ref - logpi = 0.5, ratio 1: k1 = -d, k2 = d^2/2, k3 = e^d - d - 1; slopes by logpi
        ("k1", False, -0.5, 1.0),
        ("k2", False, 0.125, -0.5),
        ("k3", False, math.exp(0.5) - 1.5, 1 - math.exp(0.5)),
        ("k3", True, math.exp(0.5) - 1.5, (1 - math.exp(0.5)) + (math.exp(0.5) - 1.5)),
    ],
)
def test_kl_by_hand(estimator: str, times_ratio: bool, kl: float, slope: float) -> None:
    logprobs = torch.tensor([[-1.0]], requires_grad=True)
    objective = Objective(beta=0.1, kl_estimator=estimator, kl_times_ratio=times_ratio)
    loss, stats = policy_loss(
        logprobs,
        torch.tensor([0.0]),
        completion_mask([1], 1),
        window_of([1]),
        objective,
        reference_logprobs_BT=torch.tensor([[-0.5]]),
    )
    loss.backward()
    assert loss.item() == pytest.approx(0.1 * kl, rel=1e-5)
    assert stats.means()["kl"] == pytest.approx(kl, rel=1e-5)
    assert logprobs.grad is not None
    assert logprobs.grad.item() == pytest.approx(0.1 * slope, rel=1e-5)


def test_sequence_ratio_is_the_geometric_mean_of_the_tokens_ratios() -> None:
    # 9 stands outside the mask: in the padding, and in a third rollout without a score.
    log_ratio = torch.tensor([[0.1, 0.3, 9.0], [-0.2, 9.0, 9.0], [9.0, 9.0, 9.0]])
    loss, stats = policy_loss(
        log_ratio,
        torch.tensor([1.0, 1.0, 0.0]),
        completion_mask([2, 1, 0], 3),
        window_of([2, 1]),
        Objective(importance_sampling_level="sequence", clip_high=0.5),
        old_logprobs_BT=torch.zeros(3, 3),
    )
    assert loss.item() == pytest.approx(-(2 * math.exp(0.2) + math.exp(-0.2)) / 3, rel=1e-6)
    assert stats.means()["ratio_mean"] == pytest.approx((math.exp(0.2) + math.exp(-0.2)) / 2, rel=1e-6)


# --- masks and denominators -------------------------------------------------------------------------------------


def test_mask_keeps_the_end_of_sequence_token_when_padding_has_the_same_id() -> None:
    end = 7
    ids = torch.tensor([[5, 6, end, end], [5, end, end, end]])  # one end of sequence each, the rest is padding
    mask = completion_mask([3, 2], 4)
    assert mask.tolist() == [[True, True, True, False], [True, True, False, False]]
    assert ids[mask].tolist() == [5, 6, end, 5, end]


def test_length_longer_than_the_columns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[5\] do not lie in 0..4"):
        completion_mask([5], 4)


def test_unscored_and_truncated_leave_mask_and_denominators() -> None:
    flags = {"scored_B": [True, False, True], "truncated_B": [False, False, True]}

    def counted(**options: bool) -> tuple[list[int], int, int]:
        window = window_of([2, 3, 4], **flags, **options)
        return loss_mask([2, 3, 4], 4, **flags, **options).sum(-1).tolist(), window.tokens, window.sequences

    assert counted() == ([2, 0, 4], 6, 2)
    assert counted(count_unscored=True) == ([2, 3, 4], 9, 3)
    assert counted(mask_truncated=True) == ([2, 0, 0], 2, 2)
    assert counted(mask_truncated=True, count_unscored=True) == ([2, 3, 0], 5, 3)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_an_unscored_rollout_changes_nothing(loss_type: str) -> None:
    objective = Objective(loss_type=loss_type, beta=0.1)
    scored = [True] * 8
    scored[2] = False
    loss, with_it, _ = gradient(objective, [list(range(8))], scored)
    kept = [row for row in range(8) if row != 2]
    loss_without, without, _ = gradient(objective, [kept], scored)
    assert loss == pytest.approx(loss_without, rel=1e-6)
    assert torch.equal(with_it, without)
    assert with_it[2].tolist() == [0.0] * 4
    _, counted, _ = gradient(objective, [list(range(8))], scored, count_unscored=True)
    assert loss_type == "bnpo" or not torch.allclose(counted, with_it, rtol=1e-3)


# --- the cut into micro-batches ---------------------------------------------------------------------------------

CUTS = {
    "1": [[0, 1, 2, 3, 4, 5, 6, 7]],
    "2": [[0, 1, 2, 3], [4, 5, 6, 7]],
    "4": [[0, 1], [2, 3], [4, 5], [6, 7]],
    "8": [[row] for row in range(8)],
    "ragged": [[0], [1, 2, 3, 4, 5], [6, 7]],
    "ragged and shuffled": [[7, 2, 5], [0], [6, 3, 1, 4]],
}
VARIANTS = {
    "clipped": {},
    "sequence ratio": {"importance_sampling_level": "sequence"},
    "KL": {"beta": 0.1, "kl_times_ratio": True},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "dr_grpo"])
def test_gradient_does_not_depend_on_the_cut(loss_type: str, variant: str) -> None:
    objective = Objective(loss_type=loss_type, **VARIANTS[variant])
    scored = [True, True, True, False, True, True, True, True]
    whole_loss, whole, whole_stats = gradient(objective, CUTS["1"], scored)
    assert whole.abs().max() > 1e-3
    assert whole_stats.clipped_low > 0
    assert whole_stats.clipped_high > 0
    for cuts in CUTS.values():
        loss, cut, stats = gradient(objective, cuts, scored)
        assert loss == pytest.approx(whole_loss, abs=1e-6)
        assert (cut - whole).abs().max() < 1e-6
        assert astuple(stats) == pytest.approx(astuple(whole_stats), rel=1e-6)


def test_bnpo_depends_on_the_cut_by_its_definition() -> None:
    objective = Objective(loss_type="bnpo")
    _, whole, _ = gradient(objective, CUTS["1"])
    _, dapo, _ = gradient(Objective(loss_type="dapo"), CUTS["1"])
    _, cut, _ = gradient(objective, CUTS["ragged"])
    assert torch.allclose(whole, dapo)
    assert not torch.allclose(cut, whole, rtol=1e-2)


# --- what must never happen -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_padding_never_leaks_not_even_infinite(loss_type: str, level: str) -> None:
    objective = Objective(loss_type=loss_type, importance_sampling_level=level, beta=0.1, kl_times_ratio=True)
    results = []
    for padding in (0.0, -math.inf, math.nan, 500.0):
        logprobs = torch.tensor([[-1.0, -2.0], [-1.5, padding]], requires_grad=True)
        other = torch.tensor([[-1.1, -1.9], [-1.4, 0.0]])
        loss, stats = policy_loss(
            logprobs,
            torch.tensor([1.0, -1.0]),
            completion_mask([2, 1], 2),
            window_of([2, 1]),
            objective,
            old_logprobs_BT=other,
            reference_logprobs_BT=other,
            entropy_BT=logprobs.detach(),
        )
        loss.backward()
        assert logprobs.grad is not None
        results.append((loss.item(), logprobs.grad.tolist(), stats))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_a_window_without_a_scored_rollout_gives_zero(loss_type: str) -> None:
    logprobs = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    flags = {"scored_B": [False], "truncated_B": [False]}
    mask = loss_mask([2], 2, **flags)
    objective = Objective(loss_type=loss_type)
    loss, stats = policy_loss(logprobs, torch.tensor([0.0]), mask, window_of([2], **flags), objective)
    loss.backward()
    assert loss.item() == 0.0
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[0.0, 0.0]]
    assert set(stats.means().values()) == {None}


def test_the_first_pass_on_policy_has_gradient_although_every_ratio_is_one() -> None:
    logprobs = drawn(1).requires_grad_()
    arguments = (torch.tensor(ADVANTAGES), completion_mask(LENGTHS, 4), window_of(LENGTHS), Objective())
    loss, stats = policy_loss(logprobs, *arguments)
    (first,) = torch.autograd.grad(loss, logprobs)
    given, _ = policy_loss(logprobs, *arguments, old_logprobs_BT=logprobs.detach())
    (second,) = torch.autograd.grad(given, logprobs)
    assert torch.equal(first, second)
    assert first.abs().sum() > 0.1
    assert stats.means()["log_ratio_abs_mean"] == 0.0
    assert stats.means()["kl"] is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"objective": Objective(beta=0.1)}, "exactly when beta > 0"),
        ({"reference_logprobs_BT": torch.zeros(2, 3)}, "exactly when beta > 0"),
        ({"mask_BT": torch.ones(2, 4, dtype=torch.bool)}, "shapes differ"),
        ({"advantages_B": torch.ones(3)}, "shapes differ"),
    ],
)
def test_refuses(change: dict[str, Any], word: str) -> None:
    arguments: dict[str, Any] = {
        "logprobs_BT": torch.zeros(2, 3),
        "advantages_B": torch.ones(2),
        "mask_BT": torch.ones(2, 3, dtype=torch.bool),
        "window": window_of([3, 3]),
        "objective": Objective(),
    }
    with pytest.raises(ValueError, match=word):
        policy_loss(**(arguments | change))


@pytest.mark.parametrize(
    ("choice", "word"),
    [
        ({"loss_type": "ppo"}, "allowed are dapo, grpo, bnpo, dr_grpo"),
        ({"importance_sampling_level": "word"}, "allowed are token, sequence"),
        ({"kl_estimator": "k4"}, "allowed are k1, k2, k3"),
        ({"clip_low": 1.5}, "clip_low is 1.5"),
        ({"clip_high": -0.1}, "clip_high -0.1"),
        ({"beta": -1.0}, "beta -1.0"),
    ],
)
def test_objective_refuses(choice: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Objective(**choice)


def test_flags_that_do_not_fit_the_rollouts_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        loss_mask([1, 2], 2, scored_B=[True], truncated_B=[False, False])
