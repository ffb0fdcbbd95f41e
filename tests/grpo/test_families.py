"""Checkpoints of every family are loaded as themselves, adapted where they were asked to be, and their adapters come
back whole: by this program and by peft alone."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from families import FAMILIES, checkpoint, config_for, policy_of, wide
from parts import byte_tokenizer
from peft import AutoPeftModel, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo import adapter
from grpo import config as configs
from grpo.adapter import is_vision, kinds
from grpo.config import SampleSettings
from grpo.policy import collate
from grpo.pretrained import load_pretrained, load_tokenizer
from grpo.run import describe_policy
from grpo.size import weights_of
from render.errors import ConfigError, SetupError, UserError

torch.set_num_threads(1)
MESSAGES = [{"role": "system", "content": "You paint."}, {"role": "user", "content": "Paint 12 flowers."}]
IDS = torch.tensor([[1, 40, 41, 42, 2, 77, 78, 79]])


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits


def greedy(model: Any) -> list[int]:
    model.eval()
    with torch.no_grad():
        return model.generate(
            input_ids=IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=12, min_new_tokens=12, do_sample=False
        )[0].tolist()


@pytest.fixture(scope="module", params=FAMILIES)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("checkpoint")
    return folder, checkpoint(folder, request.param)


def test_a_checkpoint_is_loaded_as_itself_and_its_vision_part_is_left_alone(saved: tuple[Path, Any]) -> None:
    folder, original = saved
    policy = policy_of(config_for(folder), trained=False)
    assert policy.base_class == type(original).__name__
    assert torch.equal(logits(policy.model), logits(original))
    assert (
        policy.prompt_ids(MESSAGES)
        == byte_tokenizer().apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=True)["input_ids"]
    )

    layers = dict(policy.model.get_base_model().named_modules())
    for name in policy.adapted:
        assert not is_vision(name)
        assert hasattr(layers[name], "lora_A"), name
    assert not any(part in name for name in policy.trainable() for part in ("visual", "lm_head", ".gate.", "embed"))

    def refuse(module: Any, *args: Any) -> None:
        raise AssertionError("the vision part was run")

    for name, module in layers.items():
        if is_vision(name):
            module.register_forward_pre_hook(refuse)
    policy.sample(IDS[0].tolist(), 2, SampleSettings(max_completion_length=3), 0)
    policy.model.train()
    policy.logprobs(collate([[1, 40, 2]], [[50, 51, 2]], 0, "cpu"), 1.0, 2)[0].sum().backward()
    untaught = [name for name, weight in policy.trainable().items() if "lora_B" in name and not weight.grad.any()]
    assert untaught == []


def test_sampling_passes_the_mask_and_positions_that_count_real_tokens(saved: tuple[Path, Any]) -> None:
    policy = policy_of(config_for(saved[0]))
    seen: list[dict[str, Any]] = []
    decoder = policy.model.get_base_model().get_decoder()
    decoder = getattr(decoder, "language_model", decoder)
    decoder.register_forward_pre_hook(lambda module, args, kwargs: seen.append(kwargs), with_kwargs=True)
    policy.sample_rows([[1, 40, 41, 42, 2], [1, 2]], SampleSettings(max_completion_length=3), 0)
    mask = torch.tensor([[1] * 5, [0, 0, 0, 1, 1]])
    for step, kwargs in enumerate(seen):
        expected = torch.cat([mask, torch.ones(2, step, dtype=torch.long)], 1)
        assert torch.equal(kwargs["attention_mask"].long(), expected)
        positions = (expected.cumsum(-1) - 1)[:, -(5 if step == 0 else 1) :]
        real = expected[:, -positions.shape[1] :].bool()
        given = kwargs["position_ids"]
        for row in given if given.dim() == 3 else given[None]:
            assert torch.equal(row.expand_as(positions)[real], positions[real])
    assert len(seen) == 3


def test_without_an_adapter_everything_but_the_vision_part_is_trained(saved: tuple[Path, Any]) -> None:
    folder, original = saved
    policy = policy_of(config_for(folder, lora={"enabled": False}))
    names = {name for name, _ in original.named_parameters()}
    assert set(policy.trainable()) == {name for name in names if not is_vision(name)}


def test_counting_on_the_meta_device_gives_what_is_there(saved: tuple[Path, Any]) -> None:
    folder, original = saved
    config = config_for(folder)
    policy = policy_of(config)
    found = weights_of(config)
    trained, total = policy.counts()
    assert found["adapter"] == trained
    assert found["total"] == total - trained
    assert found["layers"] == len(policy.adapted)
    assert found["vision"] == sum(weight.numel() for name, weight in original.named_parameters() if is_vision(name))
    assert (found["vision"] > 0) == ("Conditional" in policy.base_class)
    assert (found["experts"] > 0) == ("Moe" in policy.base_class)
    assert found["adapted"] == found["linear"]


def test_an_adapter_comes_back_by_peft_alone_into_the_right_class_and_merges(
    saved: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, original = saved
    policy = policy_of(config_for(folder))
    adapter.save(tmp_path, policy)
    trained, base = logits(policy.model), logits(original)
    assert (trained - base).abs().max() > 0.05

    auto = AutoPeftModel.from_pretrained(tmp_path)
    assert type(auto.get_base_model()) is type(original)
    assert torch.equal(logits(auto), trained)
    found = [name for name, module in auto.get_base_model().named_modules() if hasattr(module, "lora_A")]
    assert sorted(found) == sorted(policy.adapted)

    tokens = greedy(policy.model)
    assert tokens != greedy(original)
    merged = auto.merge_and_unload()
    assert type(merged) is type(original)
    assert greedy(merged) == tokens
    assert (logits(merged) - trained).abs().max() < 1e-4

    other = policy_of(config_for(folder), trained=False)
    assert torch.equal(logits(other.model), base)
    adapter.load(tmp_path, other)
    assert torch.equal(logits(other.model), trained)


def test_the_model_cards_own_lines_load_the_adapter(
    saved: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, original = saved
    policy = policy_of(config_for(folder))
    adapter.save(tmp_path, policy)
    card = (tmp_path / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    assert code.count("\n") == 6
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)
    assert torch.equal(logits(names["model"]), logits(policy.model))
    assert type(names["base"]) is type(original)
    assert names["tokenizer"]("brush.circle(12, 4)").input_ids == byte_tokenizer()("brush.circle(12, 4)").input_ids
    assert ("has a vision part" in card) == ("Conditional" in policy.base_class)
    written = json.loads((tmp_path / "policy.json").read_text())
    assert written["adapted"] == list(policy.adapted)
    assert (written["class"], written["layers"]) == (policy.base_class, len(policy.adapted))
    assert written["share"] == written["trained"] / written["weights"]


def test_the_class_trap_is_real_and_refused_here(tmp_path: Path) -> None:
    """peft, told to use the class that AutoModelForCausalLM takes, runs the base without a tensor of the adapter."""
    folder, kept = tmp_path / "base", tmp_path / "adapter"
    original = checkpoint(folder, "Qwen3.5-MoE with vision")
    adapter.save(kept, policy_of(config_for(folder)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trapped = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder), kept)
    assert type(trapped.get_base_model()).__name__ == "Qwen3_5MoeForCausalLM"
    assert torch.allclose(logits(trapped), logits(original), atol=1e-5)

    text = checkpoint(tmp_path / "text", "Qwen3.5-MoE text")
    assert type(text) is type(trapped.get_base_model())
    with pytest.raises(
        UserError, match=r"trained on Qwen3_5MoeForConditionalGeneration, the policy is a Qwen3_5MoeFor"
    ):
        adapter.load(kept, policy_of(config_for(tmp_path / "text")))


def test_an_adapter_that_does_not_fit_is_one_clear_line(tmp_path: Path) -> None:
    checkpoint(tmp_path / "base", "Qwen3")
    policy = policy_of(config_for(tmp_path / "base", lora={"targets": ("q_proj", "v_proj")}))
    adapter.save(tmp_path / "adapter", policy)
    for lora, message in (
        ({"targets": ("q_proj",)}, r"holds, and the policy has no place for, 4 tensors, first .*v_proj"),
        ({}, r"lacks 20 tensors, first .*down_proj"),
        ({"targets": ("q_proj", "v_proj"), "rank": 8}, r"is \(16, 32\) there and \(8, 32\) here; \[lora\] rank"),
        ({"enabled": False}, r"this config trains every weight"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            adapter.load(tmp_path / "adapter", policy_of(config_for(tmp_path / "base", lora=lora)))
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"not an adapter \(it holds no adapter_config\.json\)"):
        adapter.load(tmp_path, policy)


def test_beside_a_qwen3_5_config_the_saved_pre_tokenizer_is_kept(tmp_path: Path) -> None:
    from grpo.small import build_tokenizer

    checkpoint(tmp_path, "Qwen3.5-MoE with vision")
    text = 'brush.fill("#a0b1c2", 120); brush.circle(12.5, 340, 7);\n'
    own = build_tokenizer([text] * 8)
    own.save_pretrained(tmp_path)
    control = AutoTokenizer.from_pretrained(tmp_path)
    assert control(text).input_ids != own(text).input_ids
    found = load_tokenizer(str(tmp_path))
    assert found(text).input_ids == own(text).input_ids
    assert found.chat_template == own.chat_template
    assert (found.eos_token_id, found.pad_token_id) == (own.eos_token_id, own.pad_token_id)


def test_experts_are_adapted_only_on_request_and_the_router_never(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    original = checkpoint(folder, "Qwen3.5-MoE with vision")
    plain, config = policy_of(config_for(folder)), config_for(folder, lora={"experts": True})
    policy = policy_of(config)
    extra = set(policy.adapted) - set(plain.adapted)
    layers = [f"model.language_model.layers.{layer}.mlp.experts" for layer in range(4)]
    assert extra == {f"{layer}.{name}" for layer in layers for name in ("gate_up_proj", "down_proj")}
    assert "mlp.experts.gate_up_proj 4, mlp.experts.down_proj 4" in kinds(policy.adapted)
    assert weights_of(config)["adapter"] == policy.counts()[0] > plain.counts()[0]

    policy.model.train()
    policy.model.get_base_model().gradient_checkpointing_enable({"use_reentrant": False})
    batch = collate([IDS[0].tolist()] * 4, [torch.randint(3, 250, (20,)).tolist() for _ in range(4)], 0, "cpu")
    policy.logprobs(batch, 1.0, 8)[0].sum().backward()
    assert all(weight.grad.any() for name, weight in policy.trainable().items() if "lora_B" in name)
    with policy.reference():
        assert torch.equal(logits(policy.model), logits(original))

    adapter.save(tmp_path / "adapter", policy)
    tokens, values = greedy(policy.model), logits(policy.model)
    auto = AutoPeftModel.from_pretrained(tmp_path / "adapter")
    assert torch.allclose(logits(auto), values, atol=1e-5)
    assert greedy(auto.merge_and_unload()) == tokens

    checkpoint(tmp_path / "dense", "Llama")
    with pytest.raises(ConfigError, match="LlamaForCausalLM has no routed experts"):
        policy_of(config_for(tmp_path / "dense", lora={"experts": True}))


@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_a_quantised_base_learns_and_its_adapter_fits_the_whole_base(bits: str, tmp_path: Path) -> None:
    original = checkpoint(tmp_path / "base", wide)
    policy = policy_of(config_for(tmp_path / "base", policy={"quantization": bits}), trained=False)
    layers = dict(policy.model.get_base_model().named_modules())
    packed = [name for name, module in layers.items() if type(module).__module__.startswith("bitsandbytes.nn")]
    assert len(policy.adapted) == 14
    assert "lm_head" not in packed
    assert len(packed) == 14
    trained, total = policy.counts()
    assert total - trained == sum(weight.numel() for weight in original.parameters())
    # Rounded weights: near the whole model, not equal to it.
    difference = (logits(policy.model) - logits(original)).abs().max()
    assert 0 < difference < 0.5 * logits(original).abs().max()

    batch = collate([[1, 40, 2]], [[50, 51, 2]], 0, "cpu")

    def gradients() -> dict[str, torch.Tensor]:
        policy.model.train()
        policy.logprobs(batch, 1.0, 2)[0].sum().backward()
        found = {name: weight.grad.clone() for name, weight in policy.trainable().items()}
        policy.model.zero_grad()
        return found

    # Sampling in between changes nothing: packed weights would stop the gradient on its way down.
    before = gradients()
    policy.sample(IDS[0].tolist(), 2, SampleSettings(max_completion_length=3), 0)
    after = gradients()
    assert all(before[name].any() for name in before if "lora_B" in name)
    assert all(torch.equal(gradient, after[name]) for name, gradient in before.items())

    optimizer = torch.optim.AdamW(policy.trainable().values(), lr=1e-2)
    values = []
    for _ in range(4):
        policy.model.train()
        optimizer.zero_grad()
        loss = -policy.logprobs(batch, 1.0, 2)[0].sum()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
        assert policy.sample(IDS[0].tolist(), 2, SampleSettings(max_completion_length=3), 0)
    assert values[-1] < values[0] - 0.1

    adapter.save(tmp_path / "adapter", policy)
    assert f"{bits} (bitsandbytes)" in (tmp_path / "adapter" / "README.md").read_text()
    other = policy_of(config_for(tmp_path / "base"), trained=False)
    adapter.load(tmp_path / "adapter", other)
    assert (logits(other.model) - logits(original)).abs().max() > 1e-3


def test_fused_experts_head_and_vision_stay_whole_in_4_bits(tmp_path: Path) -> None:
    checkpoint(tmp_path, "Qwen3.5-MoE with vision")
    policy = policy_of(config_for(tmp_path, policy={"quantization": "4bit"}))
    kinds_of = {name: type(module).__name__ for name, module in policy.model.get_base_model().named_modules()}
    packed = {name.removesuffix(".base_layer") for name, kind in kinds_of.items() if kind == "Linear4bit"}
    assert packed == set(policy.adapted)
    for name, weight in policy.model.named_parameters():
        if ".experts." in name or "visual" in name or "lm_head" in name:
            assert weight.dtype is torch.float32, name


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["policy.quantization=4bit", "lora.enabled=false"], "[policy] quantization needs [lora] enabled = true"),
        (["lora.experts=true", "lora.dropout=0.1"], "[lora] experts = true needs dropout = 0"),
        (["lora.experts=true", "lora.enabled=false"], "[lora] experts = true needs enabled = true"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(overrides: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(ConfigError, match=re.escape(message)):
        configs.load(tmp_path / "mine.toml", overrides)


def test_what_experts_cost_and_what_stays_whole_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    for overrides, part in (
        (["lora.experts=true"], "945 million weights instead of 22"),
        (["policy.model=some/model", "policy.quantization=4bit"], "leaves fused experts, head and vision as they are"),
        (["policy.quantization=8bit"], "no effect on the small policy"),
    ):
        assert part in " ".join(configs.notes(configs.load(tmp_path / "mine.toml", overrides)))


def test_a_checkpoint_with_holes_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    checkpoint(tmp_path, "Qwen3")
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(SetupError, match=r"lacks 1 tensors of Qwen3ForCausalLM, first model\.layers\.1\.mlp\.up_proj"):
        load_pretrained(config_for(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["Qwen9ForCausalLM"]}, "no class for it (Qwen9ForCausalLM)"),
        ({"model_type": "qwen9"}, "qwen9"),
    ],
)
def test_an_unknown_class_is_one_line(change: dict, message: str, tmp_path: Path) -> None:
    checkpoint(tmp_path, "Qwen3")
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(SetupError, match=re.escape(message)) as caught:
        load_pretrained(config_for(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_tokenizer_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, "Qwen3")
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(SetupError, match="has no chat template"):
        load_pretrained(config_for(tmp_path))


def test_thinking_is_off_where_a_template_knows_it(tmp_path: Path) -> None:
    checkpoint(tmp_path, "Qwen3")
    template = (
        "{% for m in messages %}{{ m['content'] }}\n{% endfor %}<|im_start|>assistant\n"
        "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    )
    (tmp_path / "chat_template.jinja").write_text(template)
    policy = policy_of(config_for(tmp_path))
    text = policy.tokenizer.decode(policy.prompt_ids(MESSAGES))
    assert text == "You paint.\nPaint 12 flowers.\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def test_every_stop_id_of_a_checkpoint_is_honoured(tmp_path: Path) -> None:
    """Of the tokenizer (2), the text part's config (7) and the generation config (9)."""
    checkpoint(tmp_path, "Qwen3.5-MoE with vision")
    for name, change in (
        ("config.json", lambda data: data["text_config"].update(eos_token_id=7)),
        ("generation_config.json", lambda data: data.update(eos_token_id=[9])),
    ):
        data = json.loads((tmp_path / name).read_text())
        change(data)
        (tmp_path / name).write_text(json.dumps(data))
    assert set(policy_of(config_for(tmp_path)).eos_ids) == {2, 7, 9}


def test_the_commit_of_a_checkpoint_of_the_hub_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local Hub cache as a download leaves it, and no network."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--some--tiny"
    checkpoint(repository / "snapshots" / commit, "Qwen3")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    policy = policy_of(config_for("some/tiny"))
    assert (policy.origin.model, policy.origin.revision) == ("some/tiny", commit)
    assert policy.origin.tokenizer_revision == commit
    assert f"Qwen3ForCausalLM at {commit[:12]}, " in describe_policy(policy)
    adapter.save(tmp_path / "adapter", policy)
    written = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert (written["base_model_name_or_path"], written["revision"]) == ("some/tiny", commit)
    assert f"revision='{commit}'" in (tmp_path / "adapter" / "README.md").read_text()
    assert torch.equal(logits(AutoPeftModel.from_pretrained(tmp_path / "adapter")), logits(policy.model))


def test_the_35b_policy_has_the_size_that_was_measured() -> None:
    """policy.md's counts of the real shapes, which are the defaults of the class."""
    found = weights_of(config_for("Qwen/Qwen3.5-35B-A3B"))
    assert found["text"] == pytest.approx(34.66e9, abs=5e6)
    assert found["total"] == pytest.approx(35.11e9, abs=5e6)
    assert found["experts"] == pytest.approx(32.21e9, abs=5e6)
    assert (found["embedding"], found["head"]) == (248_320 * 2048, 248_320 * 2048)
    assert found["adapter"] == pytest.approx(22.48e6, abs=5e3)
    assert found["layers"] == 350
    assert found["adapted"] == pytest.approx(1.409e9, abs=1e6)
    experts = weights_of(config_for("Qwen/Qwen3.5-35B-A3B", lora={"experts": True}))
    assert experts["adapter"] - found["adapter"] == pytest.approx(945e6 - 22.48e6, abs=1e6)
    assert weights_of(config_for("Qwen/Qwen3.5-35B-A3B", lora={"enabled": False}))["adapter"] == 0
    assert weights_of(config_for("nobody/nothing")) is None
    assert weights_of(config_for("small")) is None
