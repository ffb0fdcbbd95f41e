"""The judge in this process, on tiny models of both classes, against plain passes of the same models."""

import io
import math
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tiny_qwen3vl
import torch
from judge_parts import CRITERIA, candidate, references
from PIL import Image
from safetensors.torch import load_file, save_file

from render.errors import SetupError
from reward.answers import AnswerStore
from reward.faults import Fault
from reward.judge import Judge
from reward.judge_local import TransformersJudge
from reward.settings import VlmSettings
from reward.verdict import MAX_TOKENS, Prompt

torch.set_num_threads(1)
SOFT, VERDICT = Prompt("soft", CRITERIA), Prompt("verdict", CRITERIA)


@pytest.fixture(scope="module", params=["dense", "moe"])
def folder(request, tmp_path_factory):
    return tiny_qwen3vl.save(tmp_path_factory.mktemp("model") / "tiny", moe=request.param == "moe")


@pytest.fixture(scope="module")
def back_end(folder):
    return TransformersJudge(VlmSettings(backend="transformers", model=str(folder), device="cpu", image_size=256))


def picture(seed, width=256, height=256):
    pixels = np.random.default_rng(seed).integers(0, 255, (height // 32, width // 32, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((width, height)).save(buffer, "PNG")
    return buffer.getvalue()


def plain(back_end, inputs):
    """Log-probabilities at the last position, by a pass over everything with the model's own positions."""
    with torch.inference_mode():
        positions, _ = back_end.model.model.get_rope_index(
            inputs["input_ids"],
            mm_token_type_ids=inputs["mm_token_type_ids"],
            image_grid_thw=inputs["image_grid_thw"],
            attention_mask=inputs["attention_mask"],
        )
        rest = {name: tensor for name, tensor in inputs.items() if name != "mm_token_type_ids"}
        return back_end.model(**rest, position_ids=positions).logits[0, -1].log_softmax(-1), positions


def test_the_letters_are_those_of_a_plain_pass(back_end):
    first, second = picture(1), picture(2, 320, 256)
    answer = back_end.ask(first, second, SOFT)
    logprobs, _ = plain(back_end, back_end.inputs(first, second, SOFT))
    a, b = (float(logprobs[back_end.tokenizer.convert_tokens_to_ids(letter)]) for letter in "AB")
    assert answer.logit == pytest.approx(a - b, abs=1e-4)
    assert answer.mass == pytest.approx(math.exp(a) + math.exp(b), abs=1e-5)
    assert answer.tokens_in == back_end.inputs(first, second, SOFT)["input_ids"].shape[1]


def test_positions_are_two_dimensional_within_a_picture(back_end):
    inputs = back_end.inputs(picture(1), picture(2, 320, 256), SOFT)
    logprobs, positions = plain(back_end, inputs)
    shown = inputs["mm_token_type_ids"][0] == 1
    assert int(shown.sum()) == 8 * 8 + 10 * 8
    first = positions[:, 0, shown][:, :64]
    assert len(first[0].unique()) == 1
    assert len(first[1].unique()) == len(first[2].unique()) == 8
    with torch.inference_mode():
        flat = torch.arange(inputs["input_ids"].shape[1]).expand(3, 1, -1)
        rest = {name: tensor for name, tensor in inputs.items() if name != "mm_token_type_ids"}
        other = back_end.model(**rest, position_ids=flat).logits[0, -1].log_softmax(-1)
    assert (logprobs - other).abs().max() > 1e-3, "flat positions must not pass for the model's own"


def test_the_text_is_the_chat_format_of_the_models(back_end):
    prompt = Prompt("soft", "no <|image_pad|> and no <|im_end|> from outside")
    ids = back_end.inputs(picture(1), picture(2), prompt)["input_ids"][0]
    text = back_end.tokenizer.decode(ids).replace("<|image_pad|>" * 64, "<|image_pad|>")
    before, between, after = (part.replace("<|image_pad|>", "").replace("<|im_end|>", "") for part in prompt.texts)
    shown = "<|vision_start|><|image_pad|><|vision_end|>"
    assert text == f"<|im_start|>user\n{before}{shown}{between}{shown}{after}<|im_end|>\n<|im_start|>assistant\n"


def test_the_order_of_the_pictures_matters_and_nothing_that_was_asked_before(back_end):
    pictures = picture(1), picture(2)
    answer = back_end.ask(*pictures, SOFT)
    other = back_end.ask(*reversed(pictures), SOFT)
    assert abs(answer.logit - other.logit) > 1e-2
    assert back_end.ask(*pictures, SOFT) == answer


def test_several_threads_get_the_answers_of_one(back_end):
    pairs = [(picture(seed), picture(seed + 1, 320)) for seed in range(3)]
    alone = [back_end.ask(*pair, SOFT) for pair in pairs]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda pair: back_end.ask(*pair, SOFT), pairs)) == alone


def test_a_verdict_is_what_the_model_would_say_by_itself(back_end, monkeypatch):
    monkeypatch.setitem(MAX_TOKENS, "verdict", 4)
    said = []
    decode = back_end.tokenizer.decode
    monkeypatch.setattr(back_end.tokenizer, "decode", lambda ids, **options: said.append(ids) or decode(ids, **options))
    with pytest.raises(Fault) as caught:  # random weights give no JSON
        back_end.ask(picture(1), picture(2), VERDICT)
    assert (caught.value.kind, caught.value.again, caught.value.of_service) == ("verdict", False, False)
    inputs = back_end.inputs(picture(1), picture(2), VERDICT)
    for token in said[0]:
        logprobs, _ = plain(back_end, inputs)
        assert int(logprobs.argmax()) == int(token)
        for name, value in (("input_ids", int(token)), ("attention_mask", 1), ("mm_token_type_ids", 0)):
            inputs[name] = torch.cat([inputs[name], torch.tensor([[value]], dtype=inputs[name].dtype)], dim=1)


def test_the_judge_asks_it_in_both_orders_and_keeps_the_answers(back_end, tmp_path, monkeypatch):
    monkeypatch.setattr("reward.judge.LEAST_MASS", 0.0)
    settings = VlmSettings(backend="transformers", model="tiny", mode="soft")
    for expected in (2, 0):
        judge = Judge(back_end, SOFT, settings, AnswerStore(tmp_path / "judge.sqlite"))
        score = judge.score(candidate(200), references(100))
        assert judge.totals().calls == expected
        assert 0.0 < score.value < 1.0
        assert score.info["bias"] is not None


def test_letters_that_a_random_model_hardly_ever_says_are_discarded(back_end, tmp_path):
    settings = VlmSettings(backend="transformers", model="tiny", mode="soft")
    judge = Judge(back_end, SOFT, settings, AnswerStore(tmp_path / "judge.sqlite"))
    assert judge.score(candidate(200), references(100)).value is None
    judge.probe()
    assert "of the probability" in judge.notes[0]


@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_quantised_the_vision_tower_and_the_output_stay_whole(bits, folder, back_end):
    quantised = TransformersJudge(
        VlmSettings(backend="transformers", model=str(folder), device="cpu", image_size=256, quantization=bits)
    )
    kinds = {name: type(module).__name__ for name, module in quantised.model.named_modules()}
    changed = [name for name, kind in kinds.items() if "bit" in kind.lower() and "Linear" in kind]
    assert changed
    assert all(name.startswith("model.language_model.layers.") for name in changed)
    answer, whole = (judge.ask(picture(1), picture(2), SOFT) for judge in (quantised, back_end))
    assert math.isfinite(answer.logit)
    assert answer.logit != whole.logit
    assert quantised.identity != back_end.identity


def test_weights_that_are_not_whole_are_refused(folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    weights = load_file(broken / "model.safetensors")
    del weights["model.visual.merger.norm.weight"]
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(SetupError, match=r"merger\.norm\.weight is missing"):
        TransformersJudge(VlmSettings(backend="transformers", model=str(broken), device="cpu"))


def test_a_model_that_is_not_here_or_of_another_class_is_named(tmp_path):
    with pytest.raises(SetupError, match="cannot be loaded"):
        TransformersJudge(VlmSettings(backend="transformers", model=str(tmp_path), device="cpu"))
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    with pytest.raises(SetupError, match="is a qwen3; in this process"):
        TransformersJudge(VlmSettings(backend="transformers", model=str(tmp_path), device="cpu"))
