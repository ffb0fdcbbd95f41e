import json
import os
import shutil
import subprocess
import sys
import threading

import huggingface_hub
import huggingface_hub.constants
import pytest

from render.errors import ConfigError, FarmError, SetupError
from render.painting import Outcome, Painting
from reward.pool import load_pool
from reward.settings import PoolSettings

LINE = {"tier": "love", "file_name": "images/love_a.png", "source_file": "sources/love_a.js", "subject": "hibiscus"}


@pytest.fixture
def folder(tmp_path):
    """A pool of four: two with images, two with sketches alone."""
    root = tmp_path / "pool"
    (root / "images").mkdir(parents=True)
    (root / "sources").mkdir()
    lines = []
    for tier, name, has_image in (("love", "a", 1), ("love", "b", 0), ("okay", "c", 1), ("okay", "d", 0)):
        stem = f"{tier}_{name}"
        (root / "sources" / f"{stem}.js").write_text(f"// {stem}")
        if has_image:
            (root / "images" / f"{stem}.png").write_bytes(stem.encode())
        lines.append({**LINE, "tier": tier, "file_name": f"images/{stem}.png", "source_file": f"sources/{stem}.js"})
    (root / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return root


class CountingPainter:
    def __init__(self):
        self.painted = []

    def __call__(self, source, seed):
        self.painted.append((source, seed))
        return Painting(Outcome.PAINTED, png=f"painted {source}".encode())


def load(folder, paint=None, **keywords):
    keywords.setdefault("cache", folder.parent / "cache")
    return load_pool(PoolSettings(source=str(folder), references=2), paint, **keywords)


def test_images_are_read_and_missing_ones_painted(folder):
    paint = CountingPainter()
    pool = load(folder, paint)
    assert [reference.name for reference in pool.references] == ["love_a", "love_b", "okay_c", "okay_d"]
    assert [reference.png for reference in pool.tier("love")] == [b"love_a", b"painted // love_b"]
    assert sorted(paint.painted) == [("// love_b", 0), ("// okay_d", 0)]
    assert pool.references[0].source == "// love_a"
    assert pool.references[0].meta["subject"] == "hibiscus"


def test_a_sketch_is_painted_again_only_when_its_text_or_the_studio_changes(folder):
    load(folder, CountingPainter(), fingerprint="one")
    again, edited, elsewhere = CountingPainter(), CountingPainter(), CountingPainter()
    load(folder, again, fingerprint="one")
    assert again.painted == []
    (folder / "sources" / "love_b.js").write_text("// another love_b")
    load(folder, edited, fingerprint="one")
    assert edited.painted == [("// another love_b", 0)]
    load(folder, elsewhere, fingerprint="two")
    assert len(elsewhere.painted) == 2


def test_a_sketch_that_two_entries_share_is_painted_once(folder):
    (folder / "sources" / "okay_d.js").write_text("// love_b")
    paint = CountingPainter()
    pool = load(folder, paint, parallel=4)
    assert len(paint.painted) == 1
    assert [reference.png for reference in pool.references][1::2] == [b"painted // love_b"] * 2


def test_many_loaders_at_once_paint_each_sketch_once(folder):
    paint = CountingPainter()
    pools = []
    threads = [threading.Thread(target=lambda: pools.append(load(folder, paint, parallel=2))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paint.painted) == 2
    assert all(pool == pools[0] for pool in pools)
    assert len(pools) == 6


def test_a_cached_painting_is_whole_or_absent(folder, monkeypatch):
    def no_space(source, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("reward.pool.os.replace", no_space)
        with pytest.raises(OSError, match="No space left"):
            load(folder, CountingPainter())
    assert [path.name for path in (folder.parent / "cache").iterdir()] == ["lock"]
    assert len(load(folder, CountingPainter()).references) == 4


def test_a_sketch_that_breaks_a_rule_is_the_pools_fault_and_a_lost_browser_is_not(folder):
    def rejected(source, seed):
        return Painting(Outcome.REJECTED, reason="throws", detail="x is not defined")

    def lost(source, seed):
        return Painting(Outcome.UNSCORED, reason="browser_died", detail="signal 9")

    with pytest.raises(ConfigError, match=r"metadata.jsonl:2: the sketch does not paint \(throws: x is not defined\)"):
        load(folder, rejected)
    with pytest.raises(FarmError, match="browser_died"):
        load(folder, lost)
    with pytest.raises(SetupError, match="no render farm"):
        load(folder, None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{tier: love}", r"metadata.jsonl:5: not a line of JSON"),
        ("[1, 2]", r"metadata.jsonl:5: a JSON object is needed, not list"),
        (json.dumps({**LINE, "tier": "meh"}), r"metadata.jsonl:5: tier must be one of love, okay, not 'meh'"),
        (json.dumps({**LINE, "file_name": "images/no.png", "source_file": "no.js"}), r"metadata.jsonl:5: neither"),
        (json.dumps({**LINE, "file_name": 7}), r"metadata.jsonl:5: file_name must be a path inside the pool, not 7"),
        (
            json.dumps({**LINE, "source_file": "../../secret.js"}),
            r"metadata.jsonl:5: source_file must be a path inside",
        ),
        (json.dumps({**LINE, "source_file": "/etc/passwd"}), r"metadata.jsonl:5: source_file must be a path inside"),
        (json.dumps(LINE), r"metadata.jsonl:5: the name love_a stands already at .*metadata.jsonl:1"),
    ],
)
def test_a_bad_line_is_named_with_file_and_number(folder, line, message):
    with (folder / "metadata.jsonl").open("a") as handle:
        handle.write(line + "\n")
    with pytest.raises(ConfigError, match=message):
        load(folder, CountingPainter())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/nowhere/at/all", "no such folder"),
        ("./nowhere", "no such folder"),
        ("embeded", "no such folder"),
        ("someone/a-pool", 'needs revision = "<commit>"'),
    ],
)
def test_a_source_that_is_not_there_is_named(source, message):
    with pytest.raises(ConfigError, match=message):
        load_pool(PoolSettings(source=source))


def test_a_folder_without_metadata_is_no_pool(tmp_path):
    with pytest.raises(ConfigError, match=r"has no metadata\.jsonl"):
        load_pool(PoolSettings(source=str(tmp_path)))


def test_too_few_paintings_of_a_tier_are_refused(folder):
    with pytest.raises(ConfigError, match=r"references = 6 takes 3 paintings of tier love a step, but .* holds 2"):
        load_pool(PoolSettings(source=str(folder), references=6), CountingPainter(), cache=folder.parent / "cache")


def test_the_hub_out_of_reach_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SetupError, match="someone/a-pool at 0123abc could not be fetched") as caught:
        load_pool(PoolSettings(source="someone/a-pool", revision="0123abc"))
    assert "\n" not in str(caught.value)


def test_a_hub_dataset_is_read_from_the_local_cache_by_huggingface_hubs_own_loader(folder, tmp_path):
    """In a process of its own, because the library reads its environment when it is imported."""
    for stem in ("love_b", "okay_d"):
        (folder / "images" / f"{stem}.png").write_bytes(stem.encode())
    commit, other = "50da8bb183aa472bdf6538852b652778f539a2af", "0" * 40
    repository = tmp_path / "hub" / "datasets--someone--a-pool"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / commit
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        shutil.copy(path, blobs / str(number))
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blobs / str(number))
    program = (
        "import sys; from reward.pool import load_pool; from reward.settings import PoolSettings\n"
        "from render.errors import SetupError\n"
        "settings = PoolSettings(source='someone/a-pool', revision=sys.argv[1], references=2)\n"
        "try: print(len(load_pool(settings).references))\n"
        "except SetupError as error: print(error)"
    )
    found = {}
    for revision in (commit, other):
        result = subprocess.run(
            [sys.executable, "-c", program, revision],
            env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        found[revision] = result.stdout.strip()
    assert found[commit] == "4"
    assert found[other].startswith(f"[pool] dataset someone/a-pool at {other} could not be fetched")
    assert "\n" not in found[other]


def test_the_embedded_pool_is_painted_whole(pool):
    assert len(pool.tier("love")) >= 12
    assert len(pool.tier("okay")) >= 12
    assert len({reference.png for reference in pool.references}) == len(pool.references)
    assert all(reference.png.startswith(b"\x89PNG") and reference.source for reference in pool.references)
