import pytest

from render.errors import ConfigError
from render.painting import Outcome, Painting
from reward.base import Candidate
from reward.coverage import Coverage
from reward.settings import CoverageSettings

SETTINGS = CoverageSettings(lowest=0.1, low=0.2, high=0.5, highest=0.9)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 0.0), (0.1, 0.0), (0.15, 0.5), (0.2, 1.0), (0.5, 1.0), (0.6, 0.75), (0.9, 0.0), (1.0, 0.0)],
)
def test_the_trapezoid(share, expected):
    painting = Painting(Outcome.PAINTED, png=b"png", coverage=share)
    assert Coverage(SETTINGS).score(Candidate("", "", painting)).value == pytest.approx(expected)


def test_without_a_painting_there_is_no_score():
    assert Coverage(SETTINGS).score(Candidate("", "", None)).value is None


def test_bounds_out_of_order_are_refused():
    with pytest.raises(ConfigError, match=r"\[reward.coverage\]"):
        CoverageSettings(low=0.7, high=0.5).validate()
