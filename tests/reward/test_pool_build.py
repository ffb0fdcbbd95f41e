"""A rated workshop becomes a pool that a run can use."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from grpo.config import load as load_config
from render.pixels import coverage
from reward.pool import load_pool
from reward.pool.__main__ import main
from reward.pool.build import measured
from reward.pool.ratings import Ratings
from reward.pool.workshop import items, read_lines
from reward.settings import PoolSettings

PHOTO = {
    "reference_photo": "p.jpg",
    "reference_photo_licence": "cc-by-sa-4.0",
    "reference_photo_attribution": "Ann",
    "reference_photo_url": "https://example.org/p",
}


def disc(number, side=64):
    """A disc of its own colour and place on pale paper."""
    rows, columns = np.mgrid[0:side, 0:side]
    picture = np.full((side, side, 3), 245, np.uint8)
    inside = np.hypot(columns - 20 - 3 * number, rows - 32) < 12
    picture[inside] = [200 - 20 * number, 40, 30 * number]
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


def make_workshop(folder, count=6):
    for name in ("images", "sources"):
        (folder / name).mkdir(parents=True)
    with (folder / "candidates.jsonl").open("w") as stream:
        for number in range(count):
            (folder / "images" / f"c{number}.png").write_bytes(disc(number))
            (folder / "sources" / f"c{number}.js").write_text(f"// sketch {number}\n")
            record = {
                "name": f"c{number}",
                "outcome": "painted",
                "subject": "a poppy",
                "generator_model": f"model-{number % 2}",
                "refinement_round": number % 3,
                "critic_model": "critic" if number % 3 else None,
                "gate_errors": [],
                "feedback": "More water.",
                **(PHOTO if number == 0 else {}),
            }
            stream.write(json.dumps(record) + "\n")
        stream.write(json.dumps({"name": "refused", "outcome": "rejected"}) + "\n")
    return folder


def rate_all(folder, ratings, pairs=()):
    lines = [
        {"id": f"r{number}", "kind": "rate", "name": name, "rating": rating}
        for number, (name, rating) in enumerate(ratings)
    ]
    lines += [
        {"id": f"p{number}", "kind": "pair", "left": left, "right": right, "winner": "left"}
        for number, (left, right) in enumerate(pairs)
    ]
    (folder / "ratings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


RATED = [("c0", "love"), ("c1", "okay"), ("c2", "nope"), ("c3", "meh"), ("c4", "okay"), ("c4", "love"), ("c5", "okay")]


@pytest.fixture
def workshop(tmp_path):
    folder = make_workshop(tmp_path / "workshop")
    rate_all(folder, RATED)
    return folder


@pytest.fixture
def built(workshop, tmp_path):
    assert main(["build", str(workshop), "-o", str(tmp_path / "pool")]) == 0
    return tmp_path / "pool"


def test_the_layout_is_that_of_the_public_pool(built):
    rows = {row["file_name"]: row for row in read_lines(built / "metadata.jsonl")}
    assert sorted(rows) == [f"images/{name}.png" for name in ("love_c0", "love_c4", "okay_c1", "okay_c5")]
    row = rows["images/love_c0.png"]
    assert (built / "images/love_c0.png").read_bytes() == disc(0)
    assert (built / "sources/love_c0.js").read_text() == "// sketch 0\n"
    assert row["paint_coverage"] == pytest.approx(coverage(disc(0)), abs=1e-4)
    assert {key: row[key] for key in ("source_file", "tier", "subject", "generator_model", "refinement_round")} == {
        "source_file": "sources/love_c0.js",
        "tier": "love",
        "subject": "a poppy",
        "generator_model": "model-0",
        "refinement_round": 0,
    }
    assert {key: row[key] for key in PHOTO} == PHOTO
    assert rows["images/okay_c1.png"]["reference_photo"] is None
    assert all("hpsv3_mu" not in row for row in rows.values())
    assert len({tuple(row) for row in rows.values()}) == 1


def test_it_loads_as_a_pool_and_as_the_pool_of_a_config(built, tmp_path):
    pool = load_pool(PoolSettings(source=str(built)))
    assert [(one.name, one.tier) for one in pool.references] == [
        ("love_c0", "love"),
        ("love_c4", "love"),
        ("okay_c1", "okay"),
        ("okay_c5", "okay"),
    ]
    assert pool.references[0].png == disc(0)
    assert pool.references[0].source == "// sketch 0\n"
    config = load_config("configs/laptop.toml", [f'pool.source="{built}"'])
    assert load_pool(config.pool).references == pool.references


def test_the_card_counts_names_licences_and_says_how_to_use_it(built):
    card = (built / "README.md").read_text()
    assert card.startswith('---\nlicense: "cc-by-4.0"\n')
    assert "4 paintings of two tiers, `love` and `okay`, chosen by a person out of 6." in card
    assert "| model-0 | 2 | 0 | 2 |" in card
    assert "| model-1 | 0 | 2 | 2 |" in card
    assert "Made after photographs: 1 (cc-by-sa-4.0: 1)." in card
    assert '[pool]\nsource = "ORG/NAME"' in card


def test_a_pool_is_replaced_only_on_request_and_nothing_else_ever(workshop, built, tmp_path, capsys):
    command = ["build", str(workshop), "-o", str(built)]
    assert main(command) == 2
    assert "--replace puts the new pool in its place" in capsys.readouterr().err
    rate_all(workshop, [("c2", "love"), ("c3", "okay")])
    assert main([*command, "--replace"]) == 0
    assert [row["file_name"] for row in read_lines(built / "metadata.jsonl")] == [
        "images/love_c2.png",
        "images/okay_c3.png",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool", "workshop"]
    assert main(["build", str(workshop), "-o", str(tmp_path), "--replace"]) == 2
    assert workshop.is_dir()


def test_pairs_give_tiers_to_what_was_only_compared(tmp_path):
    folder = make_workshop(tmp_path / "w")
    chain = [(f"c{better}", f"c{better + 1}") for better in range(4)]
    rate_all(folder, [("c5", "okay")], pairs=chain * 3)
    assert main(["build", str(folder), "-o", str(tmp_path / "p"), "--pairs", "0.4:0.4"]) == 0
    rows = {row["file_name"]: row for row in read_lines(tmp_path / "p/metadata.jsonl")}
    assert list(rows) == [f"images/{name}.png" for name in ("love_c0", "love_c1", "okay_c2", "okay_c3", "okay_c5")]
    strengths = [rows[f"images/{name}.png"]["strength"] for name in ("love_c0", "love_c1", "okay_c2", "okay_c3")]
    assert strengths == sorted(strengths, reverse=True)
    assert rows["images/okay_c5.png"]["strength"] is None


def test_a_pool_that_is_rated_anew_keeps_one_tier_in_its_names(built, tmp_path):
    rate_all(built, [("love_c0", "okay"), ("okay_c1", "love")])
    assert main(["build", str(built), "-o", str(tmp_path / "again")]) == 0
    rows = read_lines(tmp_path / "again/metadata.jsonl")
    assert [row["file_name"] for row in rows] == ["images/okay_c0.png", "images/love_c1.png"]
    assert rows[0]["reference_photo_attribution"] == "Ann"


def test_pictures_of_other_kinds_become_png_and_need_no_sketch(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    for number, name in enumerate(("a.jpg", "b.webp")):
        Image.open(io.BytesIO(disc(number))).save(folder / name)
    rate_all(folder, [("a", "love"), ("b", "okay")])
    assert main(["build", str(folder), "-o", str(tmp_path / "p")]) == 0
    assert all("source_file" not in row for row in read_lines(tmp_path / "p/metadata.jsonl"))
    pool = load_pool(PoolSettings(source=str(tmp_path / "p"), references=2))
    assert all(one.png.startswith(b"\x89PNG") for one in pool.references)


def test_hpsv3_is_measured_for_the_text_that_it_is_asked_with():
    class StandIn:
        identity = "stand-in"

        def measure(self, pngs, text):
            return [(float(len(png) + len(text)), 0.0) for png in pngs]

    assert measured(StandIn(), "abc", [b"1", b"12"]) == [4.0, 5.0]


@pytest.mark.parametrize(
    ("ratings", "more", "told"),
    [
        ([], [], "nothing is rated yet"),
        ([("c0", "love")], [], "no painting is of tier okay"),
        (RATED, ["--pairs", "1"], "--pairs 1: two shares are needed"),
        (RATED, ["--pairs", "0.8:0.4"], "their sum at most 1"),
        (RATED, ["--config", "configs/laptop.toml"], "--config has no effect without --hpsv3"),
        (RATED, ["--hpsv3"], "--hpsv3: the weights of HPSv3 are not here"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(ratings, more, told, workshop, tmp_path, capsys):
    rate_all(workshop, ratings)
    assert main(["build", str(workshop), "-o", str(tmp_path / "pool"), *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not (tmp_path / "pool").exists()


def test_ratings_of_paintings_that_are_gone_do_no_harm(workshop):
    ratings = Ratings([item.name for item in items(workshop)], [*read_lines(workshop / "ratings.jsonl")])
    assert set(ratings.by_name()) == {f"c{number}" for number in range(6)}
