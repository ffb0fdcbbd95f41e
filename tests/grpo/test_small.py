"""The small policy: its tokenizer loses nothing, its cache is whole or absent, its pass learns and resumes."""

import re

import numpy
import pytest
import torch

from grpo import grammar, small
from grpo.small import WarmStartSettings, build_model, build_tokenizer, warm_start
from render.errors import ConfigError

TINY = WarmStartSettings(steps=10, batch_size=2, learning_rate=1e-2, threads=1, hidden_size=32, experts=2)


def messages(subject: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": "You paint."}, {"role": "user", "content": f"Paint {subject}."}]


@pytest.fixture(scope="module")
def tokenizer():
    rng = numpy.random.default_rng(0)
    sketches = [grammar.sample_sketch(rng) for _ in range(1500)]
    return build_tokenizer([*sketches, *(m["content"] for s in grammar.SUBJECTS for m in messages(s))])


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    """A cache folder that one tiny warm start has filled, and what the pass reported."""
    cache = tmp_path_factory.mktemp("cache")
    reports = []
    model, tokenizer = warm_start(TINY, messages, reports.append, cache)
    return cache, reports, model, tokenizer


def weights(model) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(left, right) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "\n\n\n  \t", "const a = 12.5;", '"#ABCDEF" #12 "#12345"', "1.2.3 007 -4e-3", "don 't , a . b ?",
        "naïve Ünïcode ß", "日本語のテキスト", "🌺🏵️👩‍🎨", "\u200b\ufeff\u0000\x7f", "a\r\nb\rc", "مرحبا بالعالم",
    ],
)  # fmt: skip
def test_any_text_round_trips(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids) == text


def test_random_unicode_round_trips(tokenizer):
    rng = numpy.random.default_rng(1)
    points = rng.integers(0, 0x10FFFF, size=(200, 12))
    for row in points:
        text = "".join(chr(point) for point in row if not 0xD800 <= point <= 0xDFFF)
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_every_sketch_round_trips_with_whole_numbers_and_colours(tokenizer):
    rng = numpy.random.default_rng(2)
    for _ in range(100):
        sketch = grammar.sample_sketch(rng)
        encoding = tokenizer(sketch, add_special_tokens=False, return_offsets_mapping=True)
        assert tokenizer.decode(encoding["input_ids"]) == sketch
        assert 100 <= len(encoding["input_ids"]) <= 260
        spans = set(encoding["offset_mapping"])
        for match in re.finditer(r'"#[0-9a-f]{6}"|[0-9]+(\.[0-9]+)?', sketch):
            assert match.span() in spans, match.group()


def test_prompt_ends_where_the_assistant_begins(tokenizer):
    text = tokenizer.apply_chat_template(messages("a rose"), add_generation_prompt=True, tokenize=False)
    assert text == (
        "<|im_start|>system\nYou paint.<|im_end|>\n<|im_start|>user\nPaint a rose.<|im_end|>\n<|im_start|>assistant\n"
    )
    ids = tokenizer.apply_chat_template(messages("a rose"), add_generation_prompt=True)["input_ids"]
    assert ids.count(tokenizer.convert_tokens_to_ids("<|im_start|>")) == 3
    assert ids.count(tokenizer.eos_token_id) == 2


def test_both_stop_ids_are_set_and_pad_is_not_the_end_of_turn(tokenizer):
    model = build_model(tokenizer, TINY)
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
    assert set(model.generation_config.eos_token_id) == {tokenizer.eos_token_id, tokenizer.pad_token_id}


def test_model_is_of_the_targets_class_and_depends_on_the_seed_alone(tokenizer):
    torch.manual_seed(1)
    first = build_model(tokenizer, TINY)
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1))
    assert type(first).__name__ == "Qwen3_5MoeForCausalLM"
    assert {"linear_attention", "full_attention"} == set(first.config.layer_types)
    assert same(weights(first), weights(build_model(tokenizer, TINY)))


def test_width_that_heads_do_not_divide_is_a_config_error(tokenizer):
    with pytest.raises(ConfigError, match=r"hidden_size = 40.*multiple of 32"):
        build_model(tokenizer, WarmStartSettings(hidden_size=40))


def test_only_completion_tokens_are_learnt(tokenizer):
    model = build_model(tokenizer, TINY).eval()
    ids = tokenizer.encode("Paint a rose.const petals = 5;")
    padded = small._loss(model, [(ids, 3), ([*ids, *ids], 3)])
    with torch.no_grad():
        total, count = 0.0, 0
        for row in (ids, [*ids, *ids]):
            logits = model(input_ids=torch.tensor([row])).logits.log_softmax(-1)
            total -= sum(logits[0, t - 1, row[t]].item() for t in range(3, len(row)))
            count += len(row) - 3
    assert padded.item() == pytest.approx(total / count, abs=1e-4)


def test_short_pass_lowers_the_loss(entry):
    _, reports, _, _ = entry
    assert [report.step for report in reports] == list(range(1, TINY.steps + 1))
    assert reports[-1].loss < reports[0].loss - 1
    assert all(report.tokens_per_s > 0 for report in reports)


def test_cache_hit_trains_nothing_and_is_bit_equal(entry):
    cache, _, model, tokenizer = entry
    reports = []
    again, tokens = warm_start(TINY, messages, reports.append, cache)
    assert reports == []
    assert same(weights(model), weights(again))
    sketch = grammar.sample_sketch(numpy.random.default_rng(9))
    assert tokens.encode(sketch) == tokenizer.encode(sketch)
    assert len([path for path in cache.iterdir() if path.suffix != ".lock"]) == 1


def test_other_settings_or_prompts_have_another_key():
    def other(subject: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": subject}]

    keys = {
        small._cache_key(TINY, messages),
        small._cache_key(WarmStartSettings(), messages),
        small._cache_key(TINY, other),
    }
    assert len(keys) == 3


def test_interrupted_pass_and_half_written_entry_end_bit_equal(entry, tmp_path, monkeypatch):
    _, _, model, _ = entry
    half = tmp_path / small._cache_key(TINY, messages) / "model"
    half.mkdir(parents=True)
    (half / "model.safetensors").write_bytes(b"half")
    monkeypatch.setattr(small, "PARTIAL_EVERY_S", 0.0)

    def interrupt(report):
        if report.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        warm_start(TINY, messages, interrupt, tmp_path)
    reports = []
    resumed, _ = warm_start(TINY, messages, reports.append, tmp_path)
    assert reports[0].step == 5
    assert same(weights(model), weights(resumed))
    assert len([path for path in tmp_path.iterdir() if path.suffix != ".lock"]) == 1
