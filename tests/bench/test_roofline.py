"""The arithmetic of a step on paper, against numbers worked out by hand and counts known from elsewhere."""

import json

import pytest

from bench import roofline
from bench.roofline import SHAPES, Size, bytes_of_a_step, count_operators, size_of, step_of, tiny


def test_weights_are_those_of_the_published_shapes():
    assert size_of(SHAPES["Qwen3.5-35B-A3B"]).total == pytest.approx(34.66e9, rel=1e-3)
    assert size_of(SHAPES["Qwen3.5-4B"]).embedding == 0  # it is the head


def test_bytes_of_a_step_by_hand():
    shape = SHAPES["Qwen3.5-35B-A3B"]
    moved = bytes_of_a_step(shape, Size(100, 1000, 10), context=10, rows=2)
    assert moved["weights"] == 200
    assert moved["experts"] == pytest.approx(2000 * (1 - (248 / 256) ** 2))
    assert moved["keys and values"] == 2 * 2 * 10 * 10 * 2 * 2 * 256  # 10 full layers, 2 heads of 256, keys and values
    assert moved["recurrent states"] == 4 * 2 * (30 * 32 * 128 * 128) * 2  # 30 layers, read and written


def test_a_step_takes_its_launches_or_its_bytes_whichever_is_longer():
    shape = SHAPES["Qwen3.5-4B"]
    few, many = (step_of(shape, Size(10**9, 0, 0), 1000, (count, count)) for count in (1, 5000))
    assert few.merged == few.floor
    assert many.merged == pytest.approx(1000 * 5000 * 9e-6)


@pytest.mark.parametrize("name", ["Qwen3.5-35B-A3B", "Qwen3.5-4B"])
def test_every_four_layers_add_the_same_operators(name):
    counts = [count_operators(tiny(SHAPES[name], layers)) for layers in (4, 8, 12)]
    assert counts[2] - counts[1] == counts[1] - counts[0] > 100


def test_the_command_says_that_no_gpu_was_asked(capsys, monkeypatch):
    monkeypatch.setattr(roofline, "SHAPES", {"Qwen3.5-4B": SHAPES["Qwen3.5-4B"]})
    assert roofline.main([]) == 0
    assert "nothing here was measured on a GPU" in capsys.readouterr().out
    assert roofline.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"]["Qwen3.5-4B"]["weights"] > 4e9
