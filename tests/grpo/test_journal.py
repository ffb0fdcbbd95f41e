"""The run folder: whole rows, flushed, and honest about what a crash left."""

import csv
import json
from pathlib import Path

import pytest
from parts import painted, png

from grpo.folder import latest_folder, new_folder, read_rows
from grpo.journal import Journal
from grpo.rollout import Rollout
from render.errors import UserError
from reward.base import Score, Verdict

COLUMNS = ["step", "reward", "entropy"]


def rollouts(step: int) -> list[Rollout]:
    made = []
    for index, reward in enumerate([0.5, 0.0, None, 0.25]):
        one = Rollout(step, index, 0, "a flower", (1, 2), (3, 4), True, "code", "let a = 1")
        one.painting = painted(png=png(40 * index))
        one.verdict = Verdict(reward, "unscored" if reward is None else "scored", terms={"judge": Score(reward)})
        made.append(one)
    return made


def filled(folder: Path, steps: int) -> Journal:
    journal = Journal(folder, COLUMNS)
    for step in range(1, steps + 1):
        for one in rollouts(step):
            journal.rollout(one)
        journal.step(rollouts(step), {"step": step, "reward": step / 10, "entropy": None})
    return journal


def test_a_line_of_a_text_ends_where_the_journal_ends_it(tmp_path: Path) -> None:
    rows = [{"step": step, "text": f"a\u2028b\u2029c\u0085d\x0b{step}"} for step in (1, 2, 3)]
    path = tmp_path / "rollouts.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert read_rows(path) == rows
    path.write_bytes(path.read_bytes()[:-8] + "é".encode()[:1])  # a crash in the middle of a character
    assert read_rows(path) == rows[:2]


def test_a_step_is_on_disk_when_it_ends(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    assert [row["step"] for row in read_rows(tmp_path / "metrics.jsonl")] == [1, 2]
    assert len(read_rows(tmp_path / "rollouts.jsonl")) == 8
    with (tmp_path / "metrics.csv").open() as stream:
        assert list(csv.DictReader(stream)) == [
            {"step": "1", "reward": "0.1", "entropy": ""},
            {"step": "2", "reward": "0.2", "entropy": ""},
        ]
    assert len(list((tmp_path / "paintings").iterdir())) == len(list((tmp_path / "sketches").iterdir())) == 8
    assert (tmp_path / "sheets" / "step_0002.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "rollouts.partial.jsonl").exists()


def test_a_rollout_is_on_disk_before_its_step_ends(tmp_path: Path) -> None:
    journal = filled(tmp_path, 1)
    for one in rollouts(2)[:3]:
        journal.rollout(one)
    assert [row["index"] for row in read_rows(tmp_path / "rollouts.partial.jsonl")] == [0, 1, 2]


def test_rewinding_drops_the_rows_of_later_steps_and_a_line_cut_short(tmp_path: Path) -> None:
    journal = filled(tmp_path, 3)
    with (tmp_path / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 4, "rew')
    kept = journal.rewind(2)
    assert [row["step"] for row in kept] == [1, 2]
    assert [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [1, 2]
    assert {row["step"] for row in read_rows(tmp_path / "rollouts.jsonl")} == {1, 2}
    assert (tmp_path / "metrics.csv").read_text().splitlines() == ["step,reward,entropy", "1,0.1,", "2,0.2,"]
    journal.step(rollouts(3), {"step": 3, "reward": 0.9, "entropy": 1.0})
    assert (tmp_path / "metrics.csv").read_text().splitlines()[-1] == "3,0.9,1.0"


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    journal = filled(tmp_path, 1)
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"metrics\.jsonl: the disk is full; nothing that was there is lost") as caught:
        journal.step(rollouts(2), {"step": 2, "reward": 0.2, "entropy": None})
    assert "\n" not in str(caught.value)


def test_a_metric_that_is_no_number_stays_visible(tmp_path: Path) -> None:
    journal = Journal(tmp_path, COLUMNS)
    journal.step(rollouts(1), {"step": 1, "reward": float("nan"), "entropy": 1.0})
    assert read_rows(tmp_path / "metrics.jsonl")[0]["reward"] == "nan"


def test_a_metric_without_a_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="surprise"):
        Journal(tmp_path, COLUMNS).step(rollouts(1), {"step": 1, "reward": 0.1, "entropy": 1.0, "surprise": 2})


def test_run_folders_never_overwrite_and_the_latest_is_found(tmp_path: Path) -> None:
    for expected in ("laptop", "laptop-2", "laptop-3"):
        folder = new_folder(tmp_path, "laptop")
        assert folder.name == expected
        folder.mkdir()
        (folder / "config.toml").write_text("")
    (tmp_path / "laptop-other").mkdir()
    (tmp_path / "laptop-other" / "config.toml").write_text("")
    (tmp_path / "laptop-4").mkdir()
    assert latest_folder(tmp_path, "laptop").name == "laptop-3"
    assert latest_folder(tmp_path, "elsewhere") is None
