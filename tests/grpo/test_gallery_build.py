"""The gallery's folder: what is written, what is left alone, what a run may look like."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from gallery_kit import plain_step, png, pool, rewind, rollout, start, step

from grpo.gallery import build, live
from render.errors import UserError
from render.serve import StudioServer
from render.settings import RenderSettings


def data(out: Path, name: str) -> Any:
    """The value that a data script hands over."""
    text = (out / "data" / name).read_text()
    return json.loads("[" + text[text.index("(") + 1 : text.rindex(")")].replace(",\n]", "\n]") + "]")[2]


def wall(out: Path, run: str = "run") -> dict[tuple[int, int], list[Any]]:
    """Row of each rollout by (step, index)."""
    return {(line["step"], row[0]): row for line in data(out, f"{run}/wall.js") for row in line["rows"]}


def stamps(out: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = start(tmp_path / "run")
    for number in (1, 2):
        plain_step(folder, number)
    return folder


def test_a_second_build_writes_what_is_new_and_nothing_else(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build([run], out)
    before = stamps(out)
    build([run], out)
    again = stamps(out)
    assert {name for name in again if again[name] != before.get(name)} == {".gallery.json"}

    plain_step(run, 3)
    build([run], out)
    after = stamps(out)
    names = [f"step_0003_{index:02d}" for index in range(4)]
    assert {name for name in after if after[name] != again.get(name)} == {
        ".gallery.json",
        *(f"data/run/{name}.js" for name in ("wall", "steps", "step_0003", "fields_0003")),
        "data/runs.js",
        *(f"thumbs/run/{name}.webp" for name in names),
        *(f"paintings/run/{name}.png" for name in names),
    }
    assert sorted(wall(out)) == [(number, index) for number in (1, 2, 3) for index in range(4)]


def test_grown_by_steps_or_built_at_once_the_folder_is_the_same(tmp_path: Path) -> None:
    grown, once = start(tmp_path / "a" / "run"), start(tmp_path / "b" / "run")
    for number in (1, 2, 3):
        plain_step(grown, number)
        plain_step(once, number)
        build([grown], tmp_path / "grown")
    build([once], tmp_path / "once")
    files = [path.relative_to(tmp_path / "once") for path in (tmp_path / "once").rglob("*.js")]
    assert len(files) > 15
    for name in files:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "grown" / name).read_bytes(), name


def test_paintings_are_the_runs_own_files_where_the_disk_has_links(run: Path, tmp_path: Path) -> None:
    build([run], tmp_path / "out")
    for name in ("step_0001_00.png", "step_0002_03.png"):
        assert (tmp_path / "out" / "paintings" / "run" / name).samefile(run / "paintings" / name)


def test_a_resumed_run_is_read_again(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plain_step(run, 3)
    build([run], out)
    rewind(run, 1)
    build([run], out)
    assert {number for number, _ in wall(out)} == {1}
    step(run, 2, [rollout(2, 0, 0.77)], {0: png("#123456")})
    build([run], out)
    assert wall(out)[2, 0][3] == 0.77
    assert wall(out)[2, 0][5] == "#123456"
    assert (2, 1) not in wall(out)
    assert data(out, "runs.js")["runs"][0]["last"] == 2


def test_an_interrupted_build_goes_on(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo.gallery.builder.STEPS_AT_ONCE", 1)

    def stop(name: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        build([run], out, show=stop)
    assert {number for number, _ in wall(out)} == {1}
    looked: list[int] = []
    build([run], out, show=lambda name, done, total: looked.append(done))
    assert looked == [2]
    assert {number for number, _ in wall(out)} == {1, 2}


def test_damaged_and_missing_files_cost_only_themselves(run: Path, tmp_path: Path) -> None:
    (run / "paintings" / "step_0001_01.png").unlink()
    (run / "paintings" / "step_0001_02.png").write_bytes(png("red")[:60])
    (run / "sketches" / "step_0001_03.js").unlink()
    for name in ("rollouts.jsonl", "metrics.jsonl"):
        with (run / name).open("a") as stream:
            stream.write('{"step": 3, "index": 0, "rew')
    out = tmp_path / "out"
    build([run], out)
    rows = wall(out)
    assert [rows[1, index][5] is None for index in range(4)] == [False, True, True, False]
    assert rows[1, 1][-1].startswith("// sketch 1 1")
    details = data(out, "run/step_0001.js")
    assert [one["sketch"] for one in details] == [True, True, True, False]
    assert all("completion_ids" not in one for one in details)
    assert len(rows) == 8


def test_the_step_in_flight_is_there_and_goes_when_it_is_whole(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    step(run, 3, [rollout(3, 0, 0.5)], {0: png("red")}, whole=False)
    build([run], out)
    flight = data(out, "run/flight.js")
    assert [(line["step"], len(line["rows"])) for line in flight["lines"]] == [(3, 1)]
    assert flight["details"][0]["text"].startswith("// sketch 3 0")
    assert (3, 0) not in wall(out)
    plain_step(run, 3)
    build([run], out)
    assert data(out, "run/flight.js")["lines"] == []
    assert (3, 3) in wall(out)


def test_a_run_without_a_step_and_one_without_paintings(tmp_path: Path) -> None:
    empty, control = start(tmp_path / "empty"), start(tmp_path / "control")
    (control / "config.toml").write_text('[reward]\ntask = "fills"\n')
    told = rollout(1, 0, 0.4, painting=None, terms={"fills": 0.4}, terms_info={"fills": {"count": 5}})
    step(control, 1, [told], {})
    out = tmp_path / "out"
    build([empty, control], out)
    assert wall(out, "empty") == {}
    assert wall(out, "control")[1, 0][-1].startswith("// sketch 1 0")
    runs = {run["id"]: run for run in data(out, "runs.js")["runs"]}
    assert runs["control"]["weights"] == {"fills": 1.0}
    assert runs["empty"]["steps"] == 9


def test_references_that_the_judge_met_are_copied_with_their_tier(tmp_path: Path) -> None:
    run = start(tmp_path / "run", pool(tmp_path / "pool"))
    judged = {"judge": {"won": {"love_one": 0.5}, "missing": {"gone": "timeout"}}}
    step(run, 1, [rollout(1, 0, 0.5, terms_info=judged)], {0: png("red")})
    said: list[str] = []
    build([run], tmp_path / "out", said.append)
    assert data(tmp_path / "out", "runs.js")["runs"][0]["references"] == {"love_one": "love", "gone": None}
    assert [path.name for path in (tmp_path / "out" / "references" / "run").iterdir()] == ["love_one.png"]
    assert any("1 references without a picture" in line for line in said)


def test_runs_of_the_same_name_and_runs_that_are_left_out(run: Path, tmp_path: Path) -> None:
    other = start(tmp_path / "other" / "run")
    plain_step(other, 1)
    out = tmp_path / "out"
    build([run, other], out)
    assert (len(wall(out)), len(wall(out, "run-2"))) == (8, 4)
    build([other], out)
    assert [one["id"] for one in data(out, "runs.js")["runs"]] == ["run-2"]
    assert not any((out / folder / "run").exists() for folder in ("data", "paintings", "thumbs"))
    assert len(wall(out, "run-2")) == 4


def test_a_persons_mistakes_are_one_line(tmp_path: Path, run: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    for runs, out, words in (
        ([tmp_path], tmp_path / "x", "not a run folder"),
        ([run], tmp_path / "full", "other files"),
    ):
        with pytest.raises(UserError, match=words):
            build(runs, out)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter.txt"]


def test_the_live_page_wraps_a_sketch_as_the_farm_does() -> None:
    server = StudioServer()
    try:
        settings = RenderSettings(seed=5)
        server.prepare("SKETCH", 5, settings)
        wrapped = urlopen(f"{server.origin}/sketch.js").read().decode()
        page = urlopen(server.page()).read().decode()
    finally:
        server.close()
    own = live.wrapper()
    assert own["head"] + "SKETCH" + own["tail"] == wrapped
    told = json.loads(page.partition('id="studio-settings">')[2].partition("</script>")[0])
    mine = json.loads(json.dumps({**live.live_settings(settings), "parameters": own["parameters"]}))
    assert mine == {key: value for key, value in told.items() if key not in ("api", "source")}


def test_the_studio_comes_with_its_licences_or_not_at_all(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    build([run], out)
    assert "LESSER GENERAL PUBLIC LICENSE" in (out / "studio" / "LICENCE-p5.txt").read_text()
    assert "MIT License" in (out / "studio" / "LICENCE-p5.brush.md").read_text()
    monkeypatch.setitem(live.LIBRARIES, "/p5.min.js", tmp_path / "p5.min.js")
    build([run], out)
    assert not (out / "studio").exists()
    assert data(out, "runs.js")["live"].startswith("p5.min.js was not installed")
    assert data(out, "runs.js")["runs"][0]["live"] is None


def test_the_command_starts_without_torch_and_names_the_page(run: Path) -> None:
    code = (
        "import sys; from grpo.gallery.__main__ import main; code = main([sys.argv[1]]);"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (run / "gallery" / "index.html").resolve().as_uri()
    assert (run / "gallery" / "index.html").is_file()
