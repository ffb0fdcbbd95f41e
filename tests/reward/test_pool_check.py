"""What `check` finds in a pool, one seeded fault at a time, and what it says of a sound one."""

import io
import json

import pytest
from PIL import Image
from test_pool_build import PHOTO, disc

from render.pixels import coverage, decode
from reward.pool.__main__ import main
from reward.pool.check import check, difficulties
from reward.pool.findings import duplicates, read_pool
from reward.settings import PoolSettings

NAMES = ("love_a", "love_b", "okay_c", "okay_d")


def rows():
    found = []
    for number, name in enumerate(NAMES):
        file = {"file_name": f"images/{name}.png", "source_file": f"sources/{name}.js", "tier": name[:4]}
        found.append({**file, "paint_coverage": coverage(disc(2 * number)), "generator_model": "m"})
    return found


@pytest.fixture
def pool(tmp_path):
    """A sound pool; `write(rows)` writes other lines over it."""
    folder = tmp_path / "pool"
    for number, name in enumerate(NAMES):
        for place, content in (("images", disc(2 * number)), ("sources", b"// sketch\n")):
            (folder / place).mkdir(parents=True, exist_ok=True)
            (folder / place / f"{name}.{'png' if place == 'images' else 'js'}").write_bytes(content)
    write(folder, rows())
    return folder


def write(folder, lines):
    (folder / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def found(folder, run=None):
    return [(finding.kind, finding.where, finding.text) for finding in settings_check(folder, run).findings]


def settings_check(folder, run=None):
    return check(PoolSettings(source=str(folder), references=1), run)


def test_a_sound_pool_has_no_finding_and_its_spread_is_told(pool, capsys):
    assert main(["check", str(pool)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("nothing found")
    love, okay = settings_check(pool).tiers
    covered = sorted(coverage(disc(number)) for number in (0, 2))
    assert (love["paintings"], okay["paintings"]) == (2, 2)
    assert love["coverage"] == pytest.approx([covered[0], sum(covered) / 2, covered[1]])


def test_the_score_is_hpsv3_where_every_line_has_it(pool):
    lines = rows()
    for mu, line in zip((1.0, 3.0, 2.0, 8.0), lines, strict=True):
        line["hpsv3_mu"] = mu
    write(pool, lines)
    report = settings_check(pool)
    assert report.score == "hpsv3_mu"
    assert [row["score"] for row in report.tiers] == [[2.0, 1.0], [5.0, 3.0]]
    assert "scores above an okay one in 25% of the pairs; this score and these ratings disagree" in report.notes[-1]


def set_first(**values):
    def change(folder):
        lines = rows()
        lines[0] |= values
        write(folder, lines)

    return change


def drop(name):
    return lambda folder: (folder / name).unlink()


def put(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def add_line(text):
    def change(folder):
        with (folder / "metadata.jsonl").open("a") as stream:
            stream.write(text + "\n")

    return change


FAULTS = {
    "bad tier": (set_first(tier="best"), "format", "metadata.jsonl:1", "tier is 'best'; it must be love or okay"),
    "tier and name": (
        set_first(tier="okay"),
        "format",
        "metadata.jsonl:1",
        "love_a is named love, but its tier",
    ),
    "broken line": (add_line("{nonsense"), "format", "metadata.jsonl:5", "not a line with one JSON object"),
    "twice": (add_line(json.dumps(rows()[0])), "format", "metadata.jsonl:5", "a second painting called love_a"),
    "no sketch": (drop("sources/love_a.js"), "format", "metadata.jsonl:1", "sources/love_a.js is not there"),
    "outside": (
        set_first(file_name="../x.png"),
        "format",
        "metadata.jsonl:1",
        "'../x.png'; it must be a path",
    ),
    "no picture": (put("images/love_a.png", b"oh"), "format", "metadata.jsonl:1", "cannot be read as an image"),
    "photo": (set_first(**{**PHOTO, "reference_photo_licence": ""}), "licence", "love_a", "without licence; name it"),
    "author": (
        set_first(photo={"url": "https://a.example", "license": "cc0"}),
        "licence",
        "love_a",
        "without attribution",
    ),
    "coverage": (set_first(paint_coverage=0.9), "coverage", "love_a", "paint_coverage says 0.900, the image shows"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_once_with_what_would_be_right(name, pool):
    change, kind, where, text = FAULTS[name]
    change(pool)
    assert any(one[:2] == (kind, where) and text in one[2] for one in found(pool)), found(pool)
    assert {one[0] for one in found(pool)} <= {kind, "format"}


def test_a_misspelt_column_is_a_finding_and_an_unknown_one_a_note(pool):
    lines = [{**row, "weather": "wet"} for row in rows()]
    for line in lines:
        line["generator_modle"] = line.pop("generator_model")
    write(pool, lines)
    report = settings_check(pool)
    assert [finding.text for finding in report.findings] == [
        "column generator_modle (4 lines) is not known; generator_model seems to be meant"
    ]
    assert "columns that nothing here reads: weather" in report.notes


def test_photographs_in_other_words_are_understood(pool):
    write(pool, [{**rows()[0], "source_photo": {"license": "cc0", "author": "Ann", "url": "u"}}, *rows()[1:]])
    assert found(pool) == []


def test_a_blank_sheet_is_found(pool):
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), (245, 245, 245)).save(buffer, "PNG")
    (pool / "images/okay_c.png").write_bytes(buffer.getvalue())
    assert any("paint covers 0.000 of the sheet" in text for _, where, text in found(pool) if where == "okay_c")


def test_a_tier_with_one_painting_is_too_small(pool):
    write(pool, rows()[:3])
    assert ("format", "metadata.jsonl", "tier okay holds 1; a step with four references needs 2") in found(pool)


def test_the_same_picture_in_another_format_or_size_is_a_duplicate_and_others_are_not(pool):
    rgb = Image.fromarray(decode(disc(0))).resize((512, 512))
    large, jpeg, small = io.BytesIO(), io.BytesIO(), io.BytesIO()
    rgb.save(large, "PNG")
    rgb.save(jpeg, "JPEG", quality=80)
    rgb.resize((400, 400)).save(small, "PNG")
    same = {"a": large.getvalue(), "jpeg": jpeg.getvalue(), "small": small.getvalue()}
    pictures = same | {"b": disc(1), "c": disc(4)}
    pairs = {(finding.where, finding.text.split(" (")[0].split()[-1]) for finding in duplicates(pictures)}
    assert pairs == {("a", "jpeg"), ("a", "small"), ("jpeg", "small")}


@pytest.fixture
def run(tmp_path):
    """40 steps in which love_a always wins, love_b and okay_c win half, okay_d always loses."""
    folder = tmp_path / "run"
    folder.mkdir()
    with (folder / "rollouts.jsonl").open("w") as stream:
        for step in range(1, 41):
            half = float(step % 2)
            won = {"love_a": 0.0, "love_b": half, "okay_c": 1.0 - half, "okay_d": 1.0}
            record = {"step": step, "terms_info": {"judge": {"won": won}}}
            stream.write(json.dumps(record) + "\n")
            stream.write(json.dumps({"step": step, "terms_info": {}, "outcome": "rejected"}) + "\n")
    return folder


def test_references_that_are_too_hard_or_too_easy_for_a_run_are_named(pool, run):
    texts = {where: text for kind, where, text in found(pool, run) if kind == "difficulty"}
    assert set(texts) == {"love_a", "okay_d"}
    assert texts["love_a"].startswith("too hard for this run: expected to be beaten ")
    assert "(0 of 40 so far); useful is 25-75%" in texts["love_a"]
    assert texts["okay_d"].startswith("too easy for this run")
    assert "(40 of 40 so far)" in texts["okay_d"]
    love, okay = settings_check(pool, run).tiers
    assert [love[key] for key in ("too hard", "useful", "too easy")] == [1, 1, 0]
    assert [okay[key] for key in ("too hard", "useful", "too easy")] == [0, 1, 1]


def test_the_last_step_counts_for_a_policy_that_has_learnt(pool, tmp_path):
    folder = tmp_path / "learnt"
    folder.mkdir()
    with (folder / "rollouts.jsonl").open("w") as stream:
        for step in range(1, 61):
            for _ in range(4):
                won = {name: float(step > 30) for name in NAMES}
                stream.write(json.dumps({"step": step, "terms_info": {"judge": {"won": won}}}) + "\n")
    _, entries, _, _ = read_pool(PoolSettings(source=str(pool)))
    assert {one.verdict for one in difficulties(entries, folder, "")} == {"too easy"}


def test_json_holds_the_same_and_the_exit_code_says_that_something_was_found(pool, run, capsys):
    assert main(["check", str(pool), "--run", str(run), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [finding["where"] for finding in told["findings"]] == ["love_a", "okay_d"]
    assert {one["name"]: one["verdict"] for one in told["difficulty"]}["love_b"] == "useful"
    assert [row["tier"] for row in told["tiers"]] == ["love", "okay"]


def test_what_has_only_a_sketch_is_painted_and_looked_at(pool, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (pool / "images/love_a.png").unlink()
    sketch = "function setup(){createCanvas(64,64,WEBGL);brush.noStroke();background(240);"
    (pool / "sources/love_a.js").write_text(sketch + 'brush.fill("#c83232", 200);brush.circle(0,0,20);}')
    report = settings_check(pool)
    assert [finding.where for finding in report.findings] == ["love_a"]
    assert "paint_coverage says" in report.findings[0].text
    assert any(note.startswith("without an image: 1;") for note in report.notes)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path / "gone", "gone is not the folder of a run"),
        (lambda path: run_with(path, "stranger"), "its references are not in this pool"),
        (lambda path: run_with(path), "it holds no comparison with a reference"),
    ],
)
def test_a_run_that_cannot_say_is_a_mistake(make, told, pool, tmp_path, capsys):
    assert main(["check", str(pool), "--run", str(make(tmp_path))]) == 2
    assert told in capsys.readouterr().err


def run_with(folder, *names):
    info = {"judge": {"won": dict.fromkeys(names, 1.0)}}
    (folder / "rollouts.jsonl").write_text(json.dumps({"step": 1, "terms_info": info}) + "\n")
    return folder


def test_no_pool_is_a_mistake(tmp_path, capsys):
    assert main(["check", str(tmp_path)]) == 2
    assert main(["check", str(tmp_path / "gone")]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "is not a pool" in first
    assert second.endswith("no such folder")
