"""What goes up, without a Hub: the plan, rows and cards, and that nothing secret is in them."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import gallery_kit
import pytest
import yaml
from gallery_kit import rollout
from publish_kit import NAME, checkpoint, mixed_step, plain_step, start

from grpo.publish import __main__ as publish
from grpo.publish.files import Item, Publication, Repository, collect
from grpo.publish.settings import PublishSettings, lacking
from render.errors import ConfigError, UserError
from render.reading import read_table

ROOT = Path(__file__).parents[2]
GOLDEN = """\
model ada/hibiscus (private where it is new)
  README.md                  3.4 kB
  adapter_model.safetensors  12.5 MB
  run.json                   57 bytes
dataset ada/hibiscus-rollouts (private where it is new)
  rollouts/step_0001 to step_0002  2.0 MB, 4 rollouts, 1 paintings
  run.json                         57 bytes
  README.md                        999 bytes
adapter of step 2; in all 8 files, 14.5 MB
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = start(tmp_path / "run")
    plain_step(folder, 1)
    mixed_step(folder, 2)
    checkpoint(folder, 2)
    return folder


def content(repository: Repository, path: str) -> str:
    (found,) = [item for item in repository.items if item.path == path]
    return bytes_of(found).decode()


def bytes_of(item: Item) -> bytes:
    return item.content if isinstance(item.content, bytes) else item.content.read_bytes()


def rows(publication: Publication, step: int) -> list[dict[str, Any]]:
    text = content(publication.dataset, f"rollouts/step_{step:04d}/metadata.jsonl")
    return [json.loads(line) for line in text.splitlines()]


def header(card: str) -> dict[str, Any]:
    found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    assert found
    return dict(yaml.safe_load(found[1]))


# --- the plan -------------------------------------------------------------------------------------------------------


def test_the_plan_is_the_same_text_for_the_same_run() -> None:
    def item(path: str, size: int) -> Item:
        return Item(path, b"." * size)

    marker = item("run.json", 57)
    steps = tuple(
        (
            item(f"rollouts/step_000{n}/metadata.jsonl", 1_000),
            *([item("rollouts/step_0001/a.png", 1_997_500)] * (n == 1)),
        )
        for n in (1, 2)
    )
    model = (item("README.md", 3_400), item("adapter_model.safetensors", 12_500_000), marker)
    publication = Publication(
        Repository("model", NAME, (model,)),
        Repository("dataset", f"{NAME}-rollouts", ((marker,), *steps, (item("README.md", 999),))),
        step=2,
        steps=(1, 2),
        painted=1,
        rollouts=4,
    )
    assert "\n".join(publish.describe(publication, private=True)) + "\n" == GOLDEN


def test_a_dry_run_touches_neither_network_nor_folder(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a dry run wants the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert publish.main([str(run), "--to", NAME, "--dry-run"]) == 0
    assert "7 rollouts, 6 paintings" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_the_sizes_of_the_plan_are_those_of_the_files(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish.main([str(run), "--to", NAME, "--dry-run"])
    said = capsys.readouterr().out
    publication = collect(run, NAME, None, keep=False)
    total = sum(len(bytes_of(item)) for one in (publication.model, publication.dataset) for item in one.items)
    assert f"in all 21 files, {total / 1000:.1f} kB" in said


def test_a_dry_run_needs_no_torch(run: Path) -> None:
    code = "import sys\nfrom grpo.publish.__main__ import main\n"
    code += f"main([{str(run)!r}, '--to', 'a/b', '--dry-run'])\n"
    code += "print([name for name in ('torch', 'transformers', 'huggingface_hub.hf_api') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# --- rows -----------------------------------------------------------------------------------------------------------


def test_a_row_for_every_rollout_whatever_became_of_it(run: Path) -> None:
    publication = collect(run, NAME, None, keep=False)
    scored, rejected, unscored = rows(publication, 2)
    assert (scored["file_name"], scored["reward"], scored["reward_judge"]) == ("step_0002_00.png", 0.4, 0.4)
    assert scored["judge_reasons"] == "love_one: softer bleeds / muddy\nokay_one: uses the sheet"
    assert scored["sketch"] == (run / "sketches" / "step_0002_00.js").read_text()
    assert (rejected["file_name"], rejected["reward"], rejected["reason"]) == (None, 0.0, "syntax_error")
    assert (rejected["reward_gate"], rejected["reward_judge"], rejected["coverage"]) == (0.0, None, None)
    assert (unscored["file_name"], unscored["reward"], unscored["detail"]) == ("step_0002_02.png", None, "no answer")
    # The header names every column of every row, with `image` for the file's name.
    columns = [part["name"] for part in header(content(publication.dataset, "README.md"))["configs"][0]["features"]]
    assert all(list(row) == ["file_name", *columns[1:]] for row in (scored, rejected, unscored))


def test_a_task_that_paints_nothing_has_rows_without_pictures(tmp_path: Path) -> None:
    run = start(tmp_path / "run", "reward.task=fills")
    gallery_kit.step(run, 1, [rollout(1, 0, 0.5, painting=None, terms={"fills": 0.5})], {})
    publication = collect(run, NAME, None, keep=False)
    (row,) = rows(publication, 1)
    columns = [part["name"] for part in header(content(publication.dataset, "README.md"))["configs"][0]["features"]]
    assert list(row) == columns
    assert row["reward_fills"] == 0.5
    assert "image" not in columns


def test_a_step_in_flight_waits(run: Path) -> None:
    with (run / "rollouts.jsonl").open("a") as stream:
        stream.write(json.dumps(rollout(3, 0, 0.5)) + "\n")
    assert collect(run, NAME, None, keep=False).steps == (1, 2)


# --- the adapter ----------------------------------------------------------------------------------------------------


def test_the_newest_checkpoint_or_the_one_asked_for(run: Path) -> None:
    (run / "checkpoints" / ".part_0003").mkdir()
    for step, reached in ((None, 2), (0, 0)):
        publication = collect(run, NAME, step, keep=False)
        assert publication.step == reached
        assert content(publication.model, "adapter_model.safetensors").startswith(f"weights of step {reached}\0")


def test_a_checkpoint_that_the_run_removes_still_goes_up(run: Path) -> None:
    publication = collect(run, NAME, None, keep=True)
    shutil.rmtree(run / "checkpoints")
    assert content(publication.model, "adapter_model.safetensors").startswith("weights of step 2\0")


@pytest.mark.parametrize(
    ("damage", "step", "line"),
    [
        (lambda run: (run / "config.toml").unlink(), None, "not a run folder"),
        (lambda run: shutil.rmtree(run / "checkpoints"), None, "no checkpoint yet"),
        (lambda run: None, 7, "no checkpoint of step 7; there are those of 0, 2"),
        (lambda run: shutil.rmtree(run / "checkpoints/step_0002/adapter"), None, "only adapters are published"),
    ],
)
def test_what_is_missing_is_said_in_a_line(run: Path, damage: Any, step: int | None, line: str) -> None:
    damage(run)
    with pytest.raises(UserError, match=line):
        collect(run, NAME, step, keep=False)


# --- cards ----------------------------------------------------------------------------------------------------------


def test_the_header_names_a_base_of_the_hub_and_none_that_is_a_folder(run: Path) -> None:
    publication = collect(run, NAME, None, keep=False)
    assert header(content(publication.model, "README.md"))["base_model"] == "Org/Base-1B"
    checkpoint(run, 3, base="/data/models/base", revision="", tokenizer="/data/models/base", tokenizer_revision="")
    publication = collect(run, NAME, None, keep=False)
    card = content(publication.model, "README.md")
    assert "base_model" not in header(card)
    assert "from_pretrained('.../base')" in card
    assert json.loads(content(publication.model, "adapter_config.json"))["base_model_name_or_path"] == ".../base"


def test_every_picture_of_the_card_goes_up_with_it(run: Path) -> None:
    publication = collect(run, NAME, None, keep=False)
    shown = re.findall(r"!\[\w+\]\((.+?)\)", content(publication.model, "README.md"))
    assert shown == ["images/curve.png", "images/step_0001.png"]
    assert set(shown) <= {item.path for item in publication.model.items}


def test_the_card_counts_what_came_of_the_run(run: Path) -> None:
    card = content(collect(run, NAME, None, keep=False).model, "README.md")
    assert "| rollouts | 7 (5 scored, 1 rejected, 1 unscored) |" in card
    # Step 1 has the rewards .01 to .04, step 2 has .4 and 0.
    assert "| reward, first third | 0.025 |" in card
    assert "| reward, last third | 0.200 |" in card


def test_the_licence_of_a_pool_is_that_of_its_card(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    run = start(tmp_path / "run", f"pool.source={pool}")
    plain_step(run, 1)
    assert "| pool of references | unknown:" in content(collect(run, NAME, None, keep=False).model, "README.md")
    (pool / "README.md").write_text('---\ntags: [a]\nlicense: "cc-by-4.0"\n---\n# Pool\nlicense: none\n')
    assert "| pool of references | cc-by-4.0:" in content(collect(run, NAME, None, keep=False).model, "README.md")


# --- secrets --------------------------------------------------------------------------------------------------------


def test_neither_tokens_nor_places_of_this_machine_go_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    run = home / "art" / "run"
    run.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("JUDGE_API_KEY", "open-sesame-42")
    start(
        run,
        "reward.vlm.base_url=http://bob:hunter2@judge.example:8000/v1",
        f"pool.source={home}/pools/mine",
        "pool.revision=abc",
        "prompt.system=/srv/private/prompt.txt",
        base=str(run / "base" / "model"),
        tokenizer=str(run / "base" / "tokenizer"),
        revision="",
    )
    said = f"hf_{'x' * 30} and sk-{'y' * 30} at {run}/paintings by {home}, open-sesame-42, {ROOT}/render"
    mixed_step(run, 1, detail=said, text=said, terms_info={"judge": {"reasons": {"love_one": [said, ""]}}})
    publication = collect(run, NAME, None, keep=False)
    everything = b"".join(bytes_of(item) for one in (publication.model, publication.dataset) for item in one.items)
    secrets = (str(tmp_path), "hf_xxx", "sk-yyy", "open-sesame-42", "hunter2", "bob", str(ROOT), "/srv/private")
    assert [secret for secret in secrets if secret.encode() in everything] == []
    assert rows(publication, 1)[0]["detail"] == "[hidden] and [hidden] at ./paintings by ~, [hidden], .../render"
    config = content(publication.model, "config.toml")
    assert 'system = ".../prompt.txt"' in config
    assert 'source = ".../mine"' in config
    assert 'base_url = "http://[hidden]@judge.example:8000/v1"' in config


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hibiscus", "ada/", "a/b/c", "ada/hi biscus", "ada/x--y", f"ada/{'x' * 90}"])
def test_a_name_that_the_hub_would_refuse_is_refused_here(
    name: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish.main([str(run), "--to", name, "--dry-run"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ConfigError, match=r"\[publish\] to: "):
        read_table(PublishSettings, {"to": name}, "x.toml")


def test_settings_without_a_name_have_no_effect_and_are_refused() -> None:
    with pytest.raises(ConfigError, match="no effect without to"):
        read_table(PublishSettings, {"every": 5}, "x.toml")


def test_a_missing_token_is_known_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PublishSettings(to=NAME)
    monkeypatch.setenv("HF_TOKEN", "hf_abc")
    assert lacking(settings) == ""
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nowhere")
    assert "no token" in lacking(settings)
    assert lacking(PublishSettings()) == ""
