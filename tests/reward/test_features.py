import cv2
import numpy as np
import pytest

from reward.counterfeits import KINDS, counterfeits, variations
from reward.features import measure, measure_picture, resized
from reward.hacked import CREAM, SIDE, disc, tinted


def flower(petals: int, eye: tuple[int, int, int] = (125, 40, 80)) -> np.ndarray:
    """A flat flower with `petals` petals about the middle of the sheet, the first one pointing up."""
    rows, columns = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    angle, radius = np.arctan2(columns, -rows), np.hypot(rows, columns)
    picture = tinted((radius < 130 + 80 * np.cos(petals * angle)).astype(np.float32))
    picture[radius < 35] = eye
    return picture.astype(np.uint8)


def test_every_picture_has_the_same_finite_statistics(hacked, pool):
    names = list(measure(pool.references[0].png))
    for name, png in (hacked | {reference.name: reference.png for reference in pool.references}).items():
        found = measure(png)
        assert list(found) == names, name
        assert np.isfinite(list(found.values())).all(), name


@pytest.mark.parametrize(("height", "width"), [(8, 8), (40, 600), (600, 40), (1, 1), (900, 1200)])
def test_any_size_can_be_measured(height, width):
    picture = cv2.resize(flower(5), (width, height), interpolation=cv2.INTER_AREA)
    assert np.isfinite(list(measure_picture(picture).values())).all()


def test_the_same_bytes_measure_the_same(pool):
    png = pool.references[0].png
    first = dict(measure(png))
    measure.cache_clear()
    assert measure(png) == first


def test_petals_are_counted_as_notches_and_a_disc_has_none():
    for petals in (4, 5, 6, 7):
        assert measure_picture(flower(petals))["notches"] == pytest.approx(np.log1p(petals))
    circle = tinted(disc(150)).astype(np.uint8)
    assert measure_picture(circle)["notches"] == 0
    assert measure_picture(circle)["lobes"] < measure_picture(flower(5))["lobes"] - 1


def test_blur_makes_softer_and_enlarging_does_not():
    sharp = flower(5)
    soft = cv2.GaussianBlur(sharp, (0, 0), 6)
    small = cv2.resize(sharp, (60, 60), interpolation=cv2.INTER_AREA)
    softness = [measure_picture(picture)["softness"] for picture in (sharp, soft, small)]
    assert softness[1] > softness[0] + 0.2
    assert softness[2] < softness[0] + 0.1


def test_the_spectral_slope_of_white_noise_is_flat_and_blur_steepens_it():
    noise = np.random.default_rng(0).integers(0, 256, (256, 256, 3)).astype(np.uint8)
    assert abs(measure_picture(noise)["spectral_slope"]) < 0.2
    assert measure_picture(cv2.GaussianBlur(noise, (0, 0), 2))["spectral_slope"] < -1


def test_colour_shares_follow_the_pigment():
    assert measure_picture(flower(5))["warm_share"] > 0.95
    leaf = tinted(disc(150), (120, 160, 90)).astype(np.uint8)
    assert measure_picture(leaf)["green_share"] > 0.95
    mud = tinted(disc(150), (110, 105, 98)).astype(np.uint8)
    assert measure_picture(mud)["mud"] > 0.9


def test_a_moved_painting_is_off_centre_and_nothing_else_changes_much():
    picture = resized(flower(5))
    moved = np.full_like(picture, 0) + np.array(CREAM, np.uint8)
    moved[:, :200] = picture[:, 56:]
    centred, shifted = measure_picture(picture), measure_picture(moved)
    assert centred["centre_x"] < 0.02
    assert shifted["centre_x"] > 0.18
    for name in ("chroma", "warm_share", "softness", "head_size", "notches"):
        assert shifted[name] == pytest.approx(centred[name], rel=0.15, abs=0.05), name


def test_patterns_repeat_and_a_flower_does_not():
    repeats = {name: measure_picture(flower(5))["repeats"] for name in ("flower",)}
    tiled = np.tile(cv2.resize(flower(5), (150, 150), interpolation=cv2.INTER_AREA), (4, 4, 1))
    assert measure_picture(tiled)["repeats"] > 0.9
    assert repeats["flower"] < 0.6


def test_counterfeits_and_variations_come_from_the_seed_alone():
    picture = flower(5)
    first = counterfeits(picture, 3, len(KINDS)) + variations(picture, 3, 2)
    again = counterfeits(picture, 3, len(KINDS)) + variations(picture, 3, 2)
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert not np.array_equal(first[0], counterfeits(picture, 4, len(KINDS))[0])


@pytest.mark.parametrize("picture", [np.full((600, 600, 3), 240, np.uint8), np.zeros((20, 20, 3), np.uint8)])
def test_counterfeits_can_be_made_of_a_picture_without_paint(picture):
    assert len(counterfeits(picture, 0, len(KINDS))) == len(KINDS)
