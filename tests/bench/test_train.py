"""python -m bench.train: a small real run, the arithmetic of the comparison, mistakes in the call."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import train, train_jobs
from bench.train import OURS, TRL, agreement, conclude, figures, main


def test_a_small_real_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "-n", "1", "--steps", "2", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "cpu_ratio=nan wall_ratio=nan rss_ratio=nan"
    results = json.loads((tmp_path / "results.json").read_text())
    run = results["runs"]["tiny"][OURS][0]
    assert run["threads"] == 1
    assert len(run["steps"]) == 3
    for step in run["steps"]:
        assert 0 < step["generate_cpu"] < step["cpu"]
        assert step["grad_norm"] > 0
    assert 100 < run["loaded"]["rss_mb"] <= run["peak_mb"]
    found = results["figures"]["tiny"][OURS]
    assert found["cpu"] == pytest.approx(sum(step["cpu"] for step in run["steps"][1:]) / 2)
    assert "model.layers.1.mlp.down_proj.weight" in run["gradients"]


def test_without_trl_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["--against", "trl"]) == 2
    said = capsys.readouterr().err
    assert "install it with: pip install -c constraints-cpu.txt -r bench/requirements-trl.txt" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [(["--jobs", "huge"], "there is no 'huge'; there are tiny, small"), (["-n", "0"], "at least one run")],
)
def test_mistakes_are_one_line(call: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(call) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_side_that_breaks_is_one_line(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(train, "ENVIRONMENT", {"PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"})
    assert main(["--quick", "--out", str(tmp_path)]) == 1
    assert "ours on tiny ended with" in capsys.readouterr().err


def a_run(cpu: float, peak: float) -> dict[str, Any]:
    step = {
        "cpu": cpu, "wall": 2 * cpu, "generate_cpu": cpu / 4, "generate_wall": cpu, "loss": 0.1, "grad_norm": 0.5,
        "sampled": 100,
    }  # fmt: skip
    return {
        "steps": [{**step, "cpu": 99.0}, step, step],
        "loaded": {"cpu": 3.0, "rss_mb": 400.0, "peak_mb": 400.0, "parameters": 1000},
        "peak_mb": peak,
        "gradients": {"a.weight": [0.4, 1.0], "b.weight": [0.3, -1.0]},
    }


def test_the_line_is_ours_over_trls_and_the_first_step_does_not_count() -> None:
    runs = {"small": {OURS: [a_run(6.0, 800.0)] * 3, TRL: [a_run(8.0, 1000.0)] * 3}, "tiny": {OURS: [a_run(1, 1)]}}
    results: dict[str, Any] = {"runs": runs, "figures": {}, "ratios": {}, "agreement": {}}
    assert conclude(results) == "cpu_ratio=0.750 wall_ratio=0.750 rss_ratio=0.800"
    assert figures(runs["small"][OURS])["after_loading_mb"] == 400
    assert results["agreement"]["small"]["equal"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("steps", 0, "loss"), 0.1001),
        (("steps", 0, "grad_norm"), 0.501),
        (("gradients", "b.weight"), [0.3, -1.001]),
        (("gradients", "c.weight"), [0.0, 0.0]),
    ],
)
def test_work_that_is_not_equal_is_seen(place: tuple, value: Any) -> None:
    ours, theirs = a_run(1.0, 1.0), copy.deepcopy(a_run(1.0, 1.0))
    assert agreement(ours, theirs)["equal"]
    inner: Any = theirs
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    assert not agreement(ours, theirs)["equal"]


def test_the_job_is_a_formula() -> None:
    job = train_jobs.JOBS["small-uneven"]
    assert train_jobs.completions(job, 3) == train_jobs.completions(job, 3) != train_jobs.completions(job, 4)
    lengths = {len(tokens) for tokens in train_jobs.completions(job, 1)}
    assert min(lengths) >= 32
    assert max(lengths) <= job.length
    assert len(lengths) > 10
    small = train_jobs.JOBS["small"]
    with torch.device("meta"):
        assert sum(weight.numel() for weight in train_jobs.build_model(small).parameters()) == pytest.approx(
            17.5e6, rel=0.01
        )
