"""The preference term: normalisation, the pool's scores on disk, the self-test, and what is said to be missing."""

import math
import subprocess
import sys

import huggingface_hub
import numpy as np
import pytest
import tiny_vl

from render.errors import ConfigError, SetupError
from render.painting import Outcome, Painting
from render.pixels import decode
from reward import hps
from reward.base import Candidate, Reference
from reward.hps import Preference, against_pool, build_hpsv3, clip, measure_pool, sigmoid
from reward.hps_files import memory_gb, missing_pieces
from reward.pool import Pool
from reward.settings import Hpsv3Settings


class Eye:
    """A scorer that answers with a number of its own for each picture, and counts."""

    def __init__(self, mu, identity="eye"):
        self.mu = mu
        self.identity = identity
        self.seen = []

    def measure(self, pngs, text):
        self.seen += pngs
        return [(self.mu(png), -1.5) for png in pngs]


def detail(png):
    return float(decode(png).std(axis=(0, 1)).sum())


def candidate(png=b"picture"):
    return Candidate("", "", Painting(Outcome.PAINTED, png=png))


@pytest.fixture
def painted():
    pictures = [tiny_vl.png(tiny_vl.picture(index, 60, 40 + index)) for index in range(6)]
    tiers = ["love"] * 3 + ["okay"] * 3
    return Pool(
        tuple(Reference(f"p{i}", tier, png) for i, (tier, png) in enumerate(zip(tiers, pictures, strict=True))), "here"
    )


def test_sigmoid_by_hand():
    assert sigmoid(0, 4) == 0.5
    assert sigmoid(4, 4) == pytest.approx(1 / (1 + math.exp(-1)))
    assert sigmoid(10.55, 4) == pytest.approx(0.93324, abs=1e-5)
    assert sigmoid(-5000, 4) == 0.0
    assert sigmoid(5000, 4) == 1.0


def test_against_pool_by_hand():
    assert against_pool(3, [3], 4) == 0.5
    expected = (1 / (1 + math.exp(-2 / 2)) + 0.5 + 1 / (1 + math.exp(3 / 2))) / 3
    assert against_pool(1, [-1, 1, 4], 2) == pytest.approx(expected)


def test_clip_by_hand():
    assert [clip(mu, -10, 15) for mu in (-11, -10, 0, 2.5, 15, 16)] == [0, 0, 0.4, 0.5, 1, 1]


@pytest.mark.parametrize(
    ("settings", "references", "expected"),
    [
        (Hpsv3Settings(), None, sigmoid(2, 4)),
        (Hpsv3Settings(temperature=1.0), None, sigmoid(2, 1)),
        (Hpsv3Settings(normalise="pool", temperature=2.0), [0.0, 2.0], against_pool(2, [0, 2], 2)),
        (Hpsv3Settings(normalise="clip", lowest=0.0, highest=8.0), None, 0.25),
    ],
)
def test_the_settings_choose_the_normalisation_and_the_raw_numbers_are_logged(settings, references, expected):
    score = Preference(Eye(lambda png: 2.0), settings, "a text", references).score(candidate())
    assert score.value == pytest.approx(expected)
    assert score.info == {"mu": 2.0, "log_sigma": -1.5}


@pytest.mark.parametrize("mu", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_no_score(mu):
    score = Preference(Eye(lambda png: mu), Hpsv3Settings(), "a text").score(candidate())
    assert score.value is None
    assert f"mu {mu}" in score.cause


def test_nothing_painted_is_not_scored_and_a_fault_of_the_scorer_travels_on():
    def broken(png):
        raise RuntimeError("CUDA error")

    term = Preference(Eye(broken), Hpsv3Settings(), "a text")
    assert term.score(Candidate("", None, None)).value is None
    with pytest.raises(RuntimeError, match="CUDA error"):
        term.score(candidate())


def test_the_pool_is_measured_once_and_again_only_for_what_changed(painted, tmp_path):
    eye = Eye(detail)
    first = measure_pool(eye, "a text", painted, tmp_path)
    assert first == [detail(reference.png) for reference in painted.references]
    assert measure_pool(eye, "a text", painted, tmp_path) == first
    assert len(eye.seen) == 6
    fewer = painted.without("p2")
    assert measure_pool(eye, "a text", fewer, tmp_path) == first[:2] + first[3:]
    assert len(eye.seen) == 6
    fresh = tiny_vl.png(tiny_vl.picture(9, 60, 60))
    grown = Pool((*painted.references, Reference("new", "okay", fresh)), "here")
    assert measure_pool(eye, "a text", grown, tmp_path) == [*first, detail(fresh)]
    assert eye.seen[6:] == [fresh]


def test_another_text_or_another_scorer_measures_the_pool_anew(painted, tmp_path):
    first, other = Eye(detail), Eye(lambda png: 1.0, identity="other")
    measure_pool(first, "a text", painted, tmp_path)
    measure_pool(first, "another text", painted, tmp_path)
    assert len(first.seen) == 12
    assert measure_pool(other, "a text", painted, tmp_path) == [1.0] * 6


def test_a_painting_of_the_pool_without_a_score_stops_the_start(painted, tmp_path):
    with pytest.raises(SetupError, match="answered mu nan for p0 of the pool here"):
        measure_pool(Eye(lambda png: math.nan), "a text", painted, tmp_path)


def test_the_self_test_refuses_a_scorer_that_prefers_blank_paper(painted):
    eye = Eye(detail)
    Preference(eye, Hpsv3Settings(), "a text").self_test(painted)
    sheets = [decode(png) for png in eye.seen if detail(png) == 0.0]
    assert [sheet.shape for sheet in sheets] == [(60, 40, 3), (60, 41, 3), (60, 42, 3)]
    for mu in (lambda png: -detail(png), lambda png: 0.25, lambda png: math.nan):
        with pytest.raises(SetupError, match=r"likes blank paper \(median mu .*\) at least as much") as caught:
            Preference(Eye(mu), Hpsv3Settings(), "a text").self_test(painted)
        assert "\n" not in str(caught.value)
    with pytest.raises(SetupError, match=r"blank paper \(median mu 0\.250\) .* \(median mu 0\.250 of 3\)"):
        Preference(Eye(lambda png: 0.25), Hpsv3Settings(), "a text").self_test(painted)


def test_the_term_is_built_from_files_and_starts_only_where_paintings_beat_paper(painted, tmp_path, monkeypatch):
    monkeypatch.setattr(hps, "load_instruction", lambda folder: tiny_vl.WORDS)

    def turned(state):
        state["rm_head.5.weight"][0] *= -1

    built, refused = [], []
    for name, change in (("as it is", lambda state: None), ("turned", turned)):
        settings = tiny_vl.changed(tiny_vl.save(tmp_path / name, change=change), normalise="pool", temperature=1.0)
        try:
            built.append(build_hpsv3(settings, "a flower", painted, tmp_path / "cache"))
        except SetupError as error:
            refused.append(str(error))
    assert len(built) == len(refused) == 1
    assert "likes blank paper" in refused[0]
    [term] = built
    scores = [term.score(candidate(reference.png)) for reference in painted.references]
    mus = [score.info["mu"] for score in scores]
    np.testing.assert_allclose(mus, term.references_mu, atol=1e-5)
    for mu, score in zip(mus, scores, strict=True):
        assert score.value == pytest.approx(against_pool(mu, term.references_mu, 1.0))


def test_each_missing_piece_is_one_line_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    lines = missing_pieces(Hpsv3Settings(), tmp_path)
    assert [line.splitlines() for line in lines] == [[line] for line in lines]
    weights, base, instruction = lines
    assert "hf download MizzenAI/HPSv3 HPSv3.safetensors --revision 4f81e3e0" in weights
    assert "hf download Qwen/Qwen2-VL-7B-Instruct config.json tokenizer.json" in base
    assert "python -m reward.instruction" in instruction


def test_pieces_that_are_here_are_not_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("reward.hps_files.load_instruction", lambda folder: tiny_vl.WORDS)
    settings = tiny_vl.save(tmp_path)
    assert missing_pieces(settings, tmp_path) == []
    (tmp_path / "tokenizer.json").unlink()
    assert missing_pieces(settings, tmp_path) == [f'[reward.hpsv3] base = "{tmp_path}" lacks tokenizer.json']


@pytest.mark.parametrize("wrong", ["/nowhere/HPSv3.safetensors", "HPSv3.safetensors", "./a/b"])
def test_weights_that_are_nowhere_are_named(tmp_path, wrong):
    with pytest.raises(ConfigError, match=r"weights = .*: neither the path of HPSv3.safetensors nor a repository"):
        missing_pieces(Hpsv3Settings(weights=wrong), tmp_path)


def test_memory_of_each_way_to_load_is_near_what_was_published():
    assert memory_gb(Hpsv3Settings(batch_size=1), gpu=True) == pytest.approx(15.5 + 0.6, abs=0.3)
    assert memory_gb(Hpsv3Settings(quantization="4bit"), gpu=True) == pytest.approx(8.66, abs=0.3)
    assert memory_gb(Hpsv3Settings(batch_size=1), gpu=False) == pytest.approx(31 + 0.6, abs=0.5)
    assert memory_gb(Hpsv3Settings(device="cpu"), gpu=True) == memory_gb(Hpsv3Settings(), gpu=False)
    sizes = [memory_gb(Hpsv3Settings(quantization=name), gpu=True) for name in ("4bit", "8bit", "none")]
    assert sizes == sorted(sizes)


def test_what_is_missing_is_told_without_torch():
    code = (
        "import sys; from reward import hps; from reward.hps_files import missing_pieces, memory_gb; "
        "from reward.settings import Hpsv3Settings as S; missing_pieces(S()); memory_gb(S(), True); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
