import pytest

from render.errors import ConfigError
from reward.base import Candidate
from reward.length import Length
from reward.settings import LengthSettings


def score(characters: int, **bounds: float) -> float | None:
    return Length(LengthSettings(**bounds)).score(Candidate("prose " * 5000, "x" * characters, None)).value


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        (0, 0.0),
        (599, 0.0),  # 149.75 tokens
        (600, 0.0),  # 150: the ramp starts at 0
        (6300, 0.5),  # 1575 = 150 + 2850 / 2
        (11996, 2849 / 2850),
        (12000, 1.0),
        (24000, 1.0),  # 6000 tokens are still allowed
        (24001, 0.0),
    ],
)
def test_the_recipes_ramp(characters, expected):
    assert score(characters) == pytest.approx(expected)


def test_the_bounds_are_settings():
    assert score(50, characters_per_token=1, lowest=0, full=100, highest=200) == pytest.approx(0.5)


def test_only_the_sketch_counts():
    assert Length(LengthSettings()).score(Candidate("x" * 12000, None, None)).value == 0.0


def test_bounds_out_of_order_are_refused():
    with pytest.raises(ConfigError, match=r"lowest < full <= highest, not 3000, 150, 6000"):
        LengthSettings(lowest=3000, full=150).validate()
