"""The policy term on the most uncertain tokens only: which tokens, and that nothing else changes."""

import pytest
import torch

from grpo.loss import Objective, denominators, entropy_threshold, loss_mask, policy_loss


@pytest.mark.parametrize(
    ("quantile", "threshold"), [(0.2, 0.9), (0.25, 0.8), (0.4, 0.8), (0.01, 0.9), (1.0, float("-inf"))]
)
def test_the_threshold_by_hand(quantile: float, threshold: float) -> None:
    assert entropy_threshold(torch.tensor([0.1, 0.9, 0.3, 0.8, 0.2]), quantile) == pytest.approx(threshold)


def test_a_window_longer_than_torch_quantile_takes_has_a_threshold() -> None:
    values = torch.arange(2**24 + 4, dtype=torch.float32)
    with pytest.raises(RuntimeError):
        torch.quantile(values, 0.5)
    assert entropy_threshold(values, 0.5) == 2**23 + 2


def test_only_uncertain_tokens_get_a_gradient_and_the_denominator_counts_all() -> None:
    logprobs = torch.full((2, 4), -1.0, requires_grad=True)
    mask = loss_mask([4, 3], 4, scored_B=[True, True], truncated_B=[False, False])
    window = denominators(mask, scored_B=[True, True], micro_batches=1, max_completion_length=4)
    taught = torch.tensor([[True, False, False, True], [False, True, False, True]])
    loss, _ = policy_loss(logprobs, torch.tensor([1.0, -2.0]), mask, window, Objective(), taught_BT=taught)
    loss.backward()
    expected = torch.tensor([[-1.0, 0, 0, -1.0], [0, 2.0, 0, 0]]) / 7
    torch.testing.assert_close(logprobs.grad, expected)


def test_the_kl_term_stays_on_every_token() -> None:
    logprobs = torch.full((1, 3), -1.0, requires_grad=True)
    mask = loss_mask([3], 3, scored_B=[True], truncated_B=[False])
    window = denominators(mask, scored_B=[True], micro_batches=1, max_completion_length=3)
    reference = torch.full((1, 3), -1.5)
    loss, _ = policy_loss(
        logprobs, torch.tensor([1.0]), mask, window, Objective(beta=0.5), reference_logprobs_BT=reference,
        taught_BT=torch.tensor([[True, False, False]]),
    )  # fmt: skip
    loss.backward()
    assert (logprobs.grad != 0).tolist() == [[True, True, True]]
