"""python -m bench.render: a small real run, mistakes in the call, Ctrl-C."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import pytest

from bench.corpus import LIGHT, QUICK, SEED, corpus
from bench.render import main, parser, plan
from render.settings import PROFILES

ROOT = Path(__file__).parents[2]


def test_a_small_real_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["--profiles", "fast", "--sketches", LIGHT, "-n", "2", "--workers", "1", "--renders", "3"]
    assert main([*call, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("speedup=nan median_s=nan ssim_min=nan mad_max=nan coverage_err_max=nan identical=yes")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["line"] == said[-1]
    assert results["determinism"]["fast"]["stages"] == {"cold": 1, "warm-up": 1, "warm": 2, "workers=1": 6}
    assert results["pictures_a_minute"]["fast"]["1"] > 0
    endured = results["endurance"]
    assert (endured["lost"], endured["wrong"], endured["orphans"]) == ([], [], 0)
    assert endured["peak_mb"] > 50
    assert results["environment"]["p5.brush"] == "2.2.2"
    assert set(results["profiles"]["fast"]["patches"]) == set(PROFILES["fast"])
    split = results["split"]["fast"]["warm"]
    assert split["wall_s"]["total"] >= split["wall_s"]["run"] > 0
    assert split["cpu_s"]["page"] > 0
    assert results["split"]["fast"]["workers=1"]["wall_s"]["transport"] > 0
    paintings = [json.loads(line) for line in (tmp_path / "out" / "paintings.jsonl").read_text().splitlines()]
    assert len(paintings) == 10
    assert {painting["shapes"] for painting in paintings} == {4}
    with (tmp_path / "out" / "timings.csv").open() as stream:
        assert [row["stage"] for row in csv.DictReader(stream)] == ["cold", "warm-up", "warm", "workers=1"]
    assert cv2.imread(str(tmp_path / "out" / "pictures" / "fast" / f"{LIGHT}.png")).shape == (600, 600, 3)
    assert cv2.imread(str(tmp_path / "out" / "seconds.png")) is not None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["--profiles", "quick"], "there is no 'quick'; there are stock, exact, fast"),
        (["--sketches", "sunset"], "there is no sketch 'sunset'"),
        (["--workers", "1,two"], "not a list of numbers"),
        (["-n", "0"], "at least one profile and one round"),
    ],
)
def test_mistakes_are_one_line(call: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(call) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_what_is_planned() -> None:
    everything = plan(parser().parse_args([]))
    assert everything.profiles == ("stock", "exact", "fast")
    assert sorted(everything.stock_sketches) == sorted(everything.sketches) == sorted(corpus())
    some = plan(parser().parse_args(["--stock-sketches", "3", "--profiles", "fast,stock"]))
    assert some.profiles == ("stock", "fast")
    assert len(some.stock_sketches) == 3
    assert all(name.startswith(SEED) for name in some.stock_sketches)
    assert plan(parser().parse_args(["--profiles", "fast"])).stock_sketches == []
    quick = plan(parser().parse_args(["--quick"]))
    assert (tuple(quick.sketches), quick.stock_sketches) == (QUICK, [LIGHT])


def test_interrupted(tmp_path: Path) -> None:
    call = ["--profiles", "fast", "--sketches", LIGHT, "-n", "100000", "--workers", "0", "--out", str(tmp_path)]
    lines = tmp_path / "paintings.jsonl"
    with subprocess.Popen(
        [sys.executable, "-m", "bench.render", *call], cwd=ROOT, env=os.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        limit = time.monotonic() + 90
        while (not lines.exists() or lines.read_text().count("\n") < 3) and time.monotonic() < limit:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == f"bench.render: interrupted; the results so far are in {tmp_path}"
    assert "Traceback" not in said
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["timings"][0]["sketch"] == LIGHT
    assert results["line"].endswith("identical=yes")
