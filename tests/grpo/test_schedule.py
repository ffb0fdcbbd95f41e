"""The learning rate against hand-computed tables."""

import pytest

from grpo.schedule import learning_rate

TABLES = {
    # 8 steps, 2 of warm-up: base x 1/3, base x 2/3, then 6 steps with p = 0, 1/6 .. 5/6
    "constant": (1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1),
    "linear": (1 / 3, 2 / 3, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6),
    "cosine": (1 / 3, 2 / 3, 1, 0.5 + 3**0.5 / 4, 0.75, 0.5, 0.25, 0.5 - 3**0.5 / 4),
}


@pytest.mark.parametrize("kind", TABLES)
def test_table(kind: str) -> None:
    rates = [learning_rate(step, 8, 3e-4, warmup_steps=2, kind=kind) for step in range(8)]
    assert rates == pytest.approx([3e-4 * share for share in TABLES[kind]], rel=1e-12)


@pytest.mark.parametrize("kind", TABLES)
def test_without_warm_up_the_first_step_is_at_base(kind: str) -> None:
    assert learning_rate(0, 5, 5e-5, kind=kind) == 5e-5


def test_recipe_five_warm_up_steps_then_constant() -> None:
    rates = [learning_rate(step, 110, 5e-5, warmup_steps=5) for step in range(110)]
    assert rates[0] > 0
    assert sum(rate < 5e-5 for rate in rates) == 5
    assert set(rates[5:]) == {5e-5}


def test_a_run_shorter_than_its_warm_up_keeps_rising() -> None:
    assert [learning_rate(step, 2, 1.0, warmup_steps=3, kind="linear") for step in range(2)] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("step", "total", "warmup", "kind", "word"),
    [
        (8, 8, 0, "linear", "step 8 of 8"),
        (-1, 8, 0, "linear", "step -1"),
        (0, 8, -1, "linear", "-1 warm-up"),
        (0, 8, 0, "cosinus", "constant, linear, cosine"),
    ],
)
def test_refuses(step: int, total: int, warmup: int, kind: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        learning_rate(step, total, 1.0, warmup_steps=warmup, kind=kind)
