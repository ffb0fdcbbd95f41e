"""python -m render: its exit codes and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench.poison import CANVAS, GOOD

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
PNG = b"\x89PNG\r\n\x1a\n"
LONG = f"function setup() {{ {CANVAS} while (true) {{}} }}"


def render(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "render", *arguments]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, input=stdin, capture_output=True, text=True, timeout=200
    )


def sketch(folder: Path, name: str, source: str) -> str:
    (folder / name).write_text(source)
    return name


def test_one_sketch_becomes_one_png(tmp_path: Path) -> None:
    done = render(tmp_path, sketch(tmp_path, "flower.js", GOOD[0]), "-o", "painting.png")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "painting.png").read_bytes().startswith(PNG)
    assert done.stdout.startswith("flower.js: painted, 1 shapes, coverage 0.")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_many_sketches_into_a_folder_with_reasons_as_json(tmp_path: Path) -> None:
    names = [
        sketch(tmp_path, "a.js", GOOD[0]),
        sketch(tmp_path, "b.js", f"function setup() {{\n{CANVAS}\nfetch('x');\n}}"),
        sketch(tmp_path, "c.js", GOOD[1]),
    ]
    done = render(tmp_path, *names, "-o", "out/new", "--json", "--workers", "2", "--seed", "3")
    assert done.returncode == 1, done.stderr
    records = {record["sketch"]: record for record in map(json.loads, done.stdout.splitlines())}
    assert {name: record["outcome"] for name, record in records.items()} == {
        "a.js": "painted",
        "b.js": "rejected",
        "c.js": "painted",
    }
    assert (records["b.js"]["reason"], records["b.js"]["line"]) == ("outside_access", 3)
    assert records["a.js"]["coverage"] > 0
    assert sorted(path.name for path in (tmp_path / "out/new").iterdir()) == ["a.png", "c.png"]


def test_standard_input_and_methods(tmp_path: Path) -> None:
    line = "brush.set('2B', '#111', 2); brush.line(-90, -90, 90, 90);"
    source = f"function setup() {{ {CANVAS} noLoop(); }} function draw() {{ {line} }}"
    refused = render(tmp_path, "-", stdin=source)
    assert (refused.returncode, "unknown_method" in refused.stdout) == (1, True), refused
    painted = render(tmp_path, "-", "--methods", "all", stdin=source)
    assert painted.returncode == 0, painted.stdout + painted.stderr
    assert (tmp_path / "painting.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.js"], "missing.js: No such file"),
        (["a.js", "b.js", "-o", "one.png"], "cannot go into one PNG"),
        (["a.js", "folder/a.js", "-o", "out"], "two sketches would both be written to out/a.png"),
        (["a.js", "--rasterizer", "brush"], "auto, llvmpipe, swiftshader"),
        (["a.js", "--workers", "-1"], "at least 0"),
        (["a.js", "--cpu-budget", "0"], "above 0"),
        (["a.js", "--methods", "fill,circel"], "methods: brush has no 'circel'; the nearest is 'circle'"),
        (["a.js", "--methods", ","], "nor a list of names"),
        (["bytes.js"], "not UTF-8"),
        (["a.js", "-o", "a.js/painting.png"], "a.js"),
        ([], "sketch.js"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    for name in ("a.js", "b.js", "folder/a.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        sketch(tmp_path, name, GOOD[0])
    (tmp_path / "bytes.js").write_bytes(b"// \xff\xfe")
    done = render(tmp_path, *arguments)
    assert done.returncode == 2, done
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "render", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    with start(tmp_path, sketch(tmp_path, "long.js", LONG), "--cpu-budget", "100") as process:
        limit = time.monotonic() + 60
        while len(children := psutil.Process(process.pid).children(recursive=True)) < 6:
            assert time.monotonic() < limit
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert psutil.wait_procs(children, timeout=5)[1] == []
    assert (process.returncode, out, err) == (130, "", "render: interrupted\n")


def test_no_browser_is_exit_code_3(tmp_path: Path) -> None:
    """Whatever the program starts is killed at once, again and again: it gives up and says so."""
    with start(tmp_path, sketch(tmp_path, "a.js", GOOD[0]), "--workers", "1") as process:
        while process.poll() is None:
            for child in psutil.Process(process.pid).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            time.sleep(0.05)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (3, "")
    assert err.startswith("render: no browser could be started")
    assert err.count("\n") == 1
