"""What the judge is asked and how replies are read: no network."""

import io
import json
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from PIL import Image

from reward.faults import retry_after
from reward.pictures import known_pair, prepared
from reward.verdict import Answer, Prompt, combine, letters, read_verdict, sigmoid


def png(array):
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(array, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('{"winner": "first", "reason": "soft"}', 1.0),
        ('{"winner": "SECOND", "reason": "soft"}', 0.0),
        ('```json\n{"winner": "second", "reason": "it {glows}"}\n```', 0.0),
        ('{"winner": "first", "reason": "cut off in the mid', 1.0),
        ('<think>{"winner": "second"} or not</think>{"winner": "first"}', 1.0),
    ],
)
def test_a_verdict_is_read_also_when_it_is_wrapped_or_cut_off(text, first):
    assert read_verdict(text)[0] == first


@pytest.mark.parametrize(
    "text",
    [
        "",
        "first",
        '{"winner": "both", "reason": ""}',
        '{"reason": "the first"}',
        '{"win',
        '{"reason": "x", "winner": "fi',
    ],
)
def test_what_names_no_winner_is_no_verdict(text):
    with pytest.raises(ValueError, match=r"reply|winner"):
        read_verdict(text)


def test_a_reason_is_one_line_of_at_most_160_characters():
    _, reason = read_verdict(json.dumps({"winner": "first", "reason": "long\n" * 100}))
    assert len(reason) == 160
    assert "\n" not in reason


def test_the_logit_of_the_letters_is_that_of_their_summed_probabilities():
    told = [("A", math.log(0.5)), (" A", math.log(0.1)), ("B", math.log(0.3)), ("x", math.log(0.1))]
    logit, mass = letters(told)
    assert logit == pytest.approx(math.log(0.6 / 0.3))
    assert mass == pytest.approx(0.9)


def test_a_letter_that_was_not_told_stands_at_the_smallest_probability_that_was():
    logit, mass = letters([("A", math.log(0.9)), ("C", math.log(0.01)), ("B", None)])
    assert logit == pytest.approx(math.log(0.9 / 0.01))
    assert mass == pytest.approx(0.9)
    assert letters([("x", -0.1)]) == (0.0, 0.0)


def test_never_written_as_minus_9999_does_not_drown_the_other_order():
    logit, _ = letters([("A", 0.0), ("B", -9999.0)])
    assert logit == pytest.approx(30.0)


def test_a_bias_for_a_place_cancels_in_logits_and_is_told():
    lead, bias = 0.8, 1.7
    first, second = (Answer(sigmoid(logit), logit, 1.0) for logit in (lead + bias, -lead + bias))
    value, found = combine(first, second, 1.0)
    assert value == pytest.approx(sigmoid(lead))
    assert found == pytest.approx(bias)
    assert combine(first, second, 2.0)[0] == pytest.approx(sigmoid(lead / 2))


@pytest.mark.parametrize(("first", "second", "value"), [(1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.5), (0, 0, 0.5)])
def test_two_verdicts_make_one_nothing_or_a_half(first, second, value):
    assert combine(Answer(first), Answer(second), 1.0) == (value, None)


def test_the_prompts_version_changes_with_mode_and_criteria_and_nothing_else():
    versions = {Prompt(mode, text).version for mode in ("verdict", "soft") for text in ("a {b}", "a {c}")}
    assert len(versions) == 4
    assert Prompt("soft", "a {b}").version in versions


@pytest.mark.parametrize("mode", ["verdict", "soft"])
def test_the_question_holds_the_criteria_as_they_are(mode):
    texts = Prompt(mode, "better: {soft} washes").texts
    assert "better: {soft} washes" in texts[0]
    assert "{criteria}" not in "".join(texts)


def test_a_picture_is_shrunk_to_size_laid_on_white_and_never_enlarged():
    large = prepared(png(np.full((300, 600, 3), 90)), 200)
    assert Image.open(io.BytesIO(large.png)).size == (200, 100)
    small = Image.open(io.BytesIO(prepared(png(np.zeros((40, 30, 4))), 200).png))
    assert small.size == (30, 40)
    assert small.mode == "RGB"
    assert np.asarray(small).min() == 255


def test_the_digest_is_of_the_pixels_not_of_the_file():
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=0)
    other = buffer.getvalue()
    assert other != png(pixels)
    assert prepared(other, 64).digest == prepared(png(pixels), 64).digest
    assert prepared(png(pixels.reshape(2, 8, 3)), 64).digest != prepared(png(pixels), 64).digest


def test_the_known_pictures_are_always_the_same():
    assert known_pair() == known_pair()


def test_retry_after_is_read_in_both_forms_and_bounded():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after("7", now) == 7.0
    assert retry_after(format_datetime(now + timedelta(seconds=9), usegmt=True), now) == pytest.approx(9.0)
    assert retry_after(format_datetime(now - timedelta(seconds=9), usegmt=True), now) == 0.0
    assert retry_after("86400", now) == 120.0
    assert retry_after("soon", now) is None
    assert retry_after(None, now) is None
    assert retry_after("nan", now) is None
