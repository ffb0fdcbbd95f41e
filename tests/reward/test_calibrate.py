"""Can a scorer teach? And what scorers say of finished paintings, from the command line."""

import json

import pytest

from bench.judge_server import JudgeServer, always_first
from reward import __main__ as command
from reward import calibrate
from reward.calibrate import Calibration, auc


@pytest.fixture
def folder(pool, tmp_path):
    """A small pool with its images, so that nothing has to be painted."""
    lines = []
    for tier in ("love", "okay"):
        for reference in pool.tier(tier)[:4]:
            name = f"{tier}_{reference.name}"
            for kind, end, content in (("images", "png", reference.png), ("sources", "js", reference.source.encode())):
                path = tmp_path / "pool" / kind / f"{name}.{end}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            lines.append({"tier": tier, "file_name": f"images/{name}.png", "source_file": f"sources/{name}.js"})
    (tmp_path / "pool" / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path / "pool"


def config(folder, **tables):
    """A TOML file beside the pool."""
    tables = {"pool": {"source": str(folder), "references": 2}, **tables}
    text = ""
    for name, values in tables.items():
        text += f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    path = folder.parent / "scores.toml"
    path.write_text(text)
    return str(path)


def judged_by(server, folder, mode):
    return config(
        folder,
        reward={"judge": "vlm"},
        **{
            "reward.vlm": {
                "backend": "server",
                "base_url": server.url,
                "mode": mode,
                "image_size": 64,
                "cache": str(folder.parent / "answers.sqlite"),
            }
        },
    )


@pytest.mark.parametrize("mode", ["verdict", "soft"])
def test_a_judge_that_always_answers_first_scores_all_alike_and_cannot_teach(mode, folder, monkeypatch, capsys):
    found = []
    table = calibrate.table
    monkeypatch.setattr(calibrate, "table", lambda rows: found.extend(rows) or table(rows))
    with JudgeServer(rule=always_first) as server:
        code = calibrate.main([judged_by(server, folder, mode), "--limit", "2"])
    judge = next(one for one in found if one.term == "judge")
    assert {score for scores in judge.scores.values() for score in scores} == {0.5}
    assert sum(map(len, judge.scores.values())) == 2 + 2 + 24
    assert (judge.splits, judge.consistent) == (1.0, 1.0)
    assert judge.bias > 0.3
    assert judge.verdict == (False, "cannot teach: every painting scores the same")
    assert code == 1
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("can_teach=")
    assert "judge" in last.partition("cannot=")[2].split(",")


def test_the_stand_ins_can_teach(folder, capsys):
    assert calibrate.main([config(folder), "--limit", "4"]) == 0
    output = capsys.readouterr().out
    assert "(stand-in)" in output
    assert output.strip().splitlines()[-1].startswith("can_teach=preference,judge")


def test_ordered_pairs_by_hand():
    assert auc([3, 2], [1, 2]) == (1 + 1 + 1 + 0.5) / 4
    assert auc([1], [2]) == 0
    assert auc([], [2]) is None


def of(love, okay, hacked):
    return Calibration("judge", "judge", {"love": love, "okay": okay, "hacked": hacked}, 0)


@pytest.mark.parametrize(
    ("scores", "teaches", "words"),
    [
        (([0.8, 0.9], [0.5, 0.6], [0.1, 0.2]), True, "can teach"),
        (([0.6, 0.5], [0.5, 0.6], [0.1, 0.2]), True, "teaches painting, not taste"),
        (([0.8, 0.9], [0.5, 0.6], [0.55, 0.7]), False, "hacked canvases score like paintings"),
        (([0.5, 0.5], [0.5, 0.5], [0.1, 0.2]), False, "every painting scores the same"),
        (([1.0, 1.0], [0.0, 1.0], [0.0, 0.0]), False, "nearly every score is at an end"),
        (([], [], []), False, "gave no score"),
    ],
)
def test_verdicts_by_hand(scores, teaches, words):
    verdict = of(*scores).verdict
    assert verdict[0] == teaches
    assert words in verdict[1]


def test_finished_paintings_are_scored_from_the_command_line(folder, capsys):
    first, second = sorted((folder / "images").glob("*.png"))[:2]
    (folder.parent / "alone.png").write_bytes(second.read_bytes())
    path = config(folder)
    assert command.main([str(first), str(folder.parent / "alone.png"), "--config", path, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["terms"].keys() == {"gate", "length", "coverage", "preference", "judge"}
    weights = {"gate": 0.05, "length": 0.05, "coverage": 0.05, "preference": 0.55, "judge": 0.30}
    assert rows[0]["reward"] == pytest.approx(sum(weights[name] * value for name, value in rows[0]["terms"].items()))
    # Without its sketch the length is open, and with it the reward that pays it.
    assert "length" not in rows[1]["terms"]
    assert rows[1]["reward"] is None
    assert command.main([str(first), "--config", path]) == 0
    assert "judge" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, b"not a picture"])
def test_what_is_no_picture_is_named_in_one_line(content, folder, capsys):
    path = folder.parent / "painting.png"
    if content is not None:
        path.write_bytes(content)
    assert command.main([str(path), "--config", config(folder)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {path}: not a picture that can be read")
    assert error.count("\n") == 1
