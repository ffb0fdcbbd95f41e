"""Chunked log-probabilities equal the plain ones in value and gradient, and never hold the logits of a completion."""

import weakref
from typing import Any

import pytest
import torch
from families import HYBRID, VISION
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3_5MoeConfig,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeForConditionalGeneration,
    Qwen3_5MoeTextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from grpo.logprobs import completion_logprobs, decoder_and_head
from render.errors import ConfigError

torch.set_num_threads(1)
VOCABULARY, PAD, END = 96, 0, 1
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "pad_token_id": PAD,
}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
MOE = SMALL | HEADS | HYBRID | {"layer_types": ["linear_attention", "full_attention"]}
BUILDERS = {
    "Qwen3, head of its own": lambda: Qwen3ForCausalLM(Qwen3Config(**SMALL, **HEADS, tie_word_embeddings=False)),
    "Qwen3, tied head": lambda: Qwen3ForCausalLM(Qwen3Config(**SMALL, **HEADS, tie_word_embeddings=True)),
    "Llama": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, **HEADS)),
    "Qwen3.5 MoE, text": lambda: Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**MOE)),
    "Qwen3.5 MoE, with vision": lambda: Qwen3_5MoeForConditionalGeneration(
        Qwen3_5MoeConfig(text_config=MOE, vision_config=VISION)
    ),
}


def build(name: str, lora: bool = False) -> Any:
    torch.manual_seed(0)
    model: Any = BUILDERS[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(5)  # far enough from a uniform distribution
    if lora:
        model = get_peft_model(
            model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", exclude_modules=".*visual.*")
        )
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "lora_B" in name:
                    weight.normal_(std=0.1)
    return model.eval()


class Rows:
    """Three rollouts with prompts and completions of unequal length: left-padded prompts, right-padded completions."""

    def __init__(self, prompts: tuple[int, ...] = (5, 2, 9), completions: tuple[int, ...] = (7, 11, 4)) -> None:
        generator = torch.Generator().manual_seed(3)
        self.prompts = [torch.randint(2, VOCABULARY, (length,), generator=generator) for length in prompts]
        self.completions = [torch.randint(2, VOCABULARY, (length,), generator=generator) for length in completions]
        for completion in self.completions:
            completion[-1] = END
        self.length = max(completions)
        self.mask = torch.arange(self.length) < torch.tensor(completions)[:, None]
        start = max(prompts)
        self.input_ids = torch.full((len(prompts), start + self.length), PAD)
        self.attention_mask = torch.zeros_like(self.input_ids)
        for row, (prompt, completion) in enumerate(zip(self.prompts, self.completions, strict=True)):
            columns = slice(start - len(prompt), start + len(completion))
            self.input_ids[row, columns] = torch.cat([prompt, completion])
            self.attention_mask[row, columns] = 1
        self.position_ids = (self.attention_mask.cumsum(-1) - 1).clamp(min=0)

    def chunked(self, model: Any, temperature: float = 1.0, chunk: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
        return completion_logprobs(
            model,
            self.input_ids,
            self.attention_mask,
            self.length,
            temperature=temperature,
            chunk=chunk,
        )

    def plain(self, model: Any, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """The model's own forward and a softmax over everything at once."""
        logits = model(
            input_ids=self.input_ids, attention_mask=self.attention_mask, position_ids=self.position_ids
        ).logits
        distribution = (logits[:, -self.length - 1 : -1].float() / temperature).log_softmax(-1)
        logprobs = distribution.gather(-1, self.input_ids[:, -self.length :, None]).squeeze(-1)
        entropy = -(distribution.exp() * distribution).sum(-1)
        return logprobs * self.mask, (entropy * self.mask).detach()


def gradients(model: Any, logprobs: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradient of a weighted sum of the log-probabilities by every trained weight."""
    model.zero_grad()
    weights = torch.linspace(-1, 2, logprobs.numel()).reshape(logprobs.shape)
    (weights * logprobs).sum().backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("lora", [False, True], ids=["full", "LoRA"])
@pytest.mark.parametrize("name", BUILDERS)
def test_chunked_equals_plain_in_value_and_gradient(name: str, lora: bool) -> None:
    model, rows = build(name, lora), Rows()
    plain_logprobs, plain_entropy = rows.plain(model, temperature=0.7)
    plain_gradients = gradients(model, plain_logprobs)
    assert plain_logprobs[rows.mask].std() > 0.1
    for chunk in (1, 4, 22, 1000):
        logprobs, entropy = rows.chunked(model, temperature=0.7, chunk=chunk)
        assert logprobs.dtype == entropy.dtype == torch.float32
        assert not entropy.requires_grad
        assert (logprobs - plain_logprobs).abs().max() < 1e-5
        assert (entropy - plain_entropy).abs().max() < 1e-5
        found = gradients(model, logprobs)
        assert found.keys() == plain_gradients.keys()
        scale = max(gradient.abs().max().item() for gradient in plain_gradients.values())
        for key, gradient in found.items():
            assert (gradient - plain_gradients[key]).abs().max() < 1e-6 * max(scale, 1), key


@pytest.mark.parametrize("name", BUILDERS)
def test_a_row_in_a_padded_batch_equals_the_row_alone(name: str) -> None:
    model, rows = build(name), Rows()
    together, _ = rows.chunked(model)
    for row, (prompt, completion) in enumerate(zip(rows.prompts, rows.completions, strict=True)):
        ids = torch.cat([prompt, completion])[None]
        alone, _ = completion_logprobs(model, ids, None, len(completion), temperature=1.0, chunk=3)
        assert (together[row, : len(completion)] - alone[0]).abs().max() < 1e-5
        assert together[row, len(completion) :].abs().sum() == 0


def test_without_the_attention_mask_a_padded_row_is_wrong() -> None:
    model, rows = build("Qwen3, head of its own"), Rows()
    right, _ = rows.chunked(model)
    rows.attention_mask = torch.ones_like(rows.attention_mask)
    wrong, _ = rows.chunked(model)
    assert ((right - wrong)[rows.mask]).abs().max() > 0.1


@pytest.mark.parametrize("name", BUILDERS)
def test_the_transformer_gets_the_mask_and_positions_that_count_real_tokens(name: str) -> None:
    """Rotary positions are relative, so that wrong ones would not show in float32; in bfloat16 they do."""
    model, rows = build(name), Rows()
    seen: list[dict[str, Any]] = []
    decoder, _ = decoder_and_head(model)
    decoder.register_forward_pre_hook(lambda module, args, kwargs: seen.append(kwargs), with_kwargs=True)
    rows.chunked(model)
    assert len(seen) == 1
    assert torch.equal(seen[0]["attention_mask"], rows.attention_mask)
    assert torch.equal(seen[0]["position_ids"], rows.position_ids)
    assert seen[0]["use_cache"] is False


def test_temperature_scales_the_logits() -> None:
    model, rows = build("Qwen3, head of its own"), Rows()
    assert (rows.chunked(model, 0.7)[0] - rows.chunked(model, 1.0)[0]).abs().max() > 0.1


def test_without_gradient_the_values_are_the_same_to_the_bit() -> None:
    model, rows = build("Qwen3.5 MoE, text"), Rows()
    with torch.no_grad():
        quiet, quiet_entropy = rows.chunked(model)
    logprobs, entropy = rows.chunked(model)
    assert not quiet.requires_grad
    assert torch.equal(quiet, logprobs)
    assert torch.equal(quiet_entropy, entropy)


@pytest.mark.parametrize("lora", [False, True], ids=["full", "LoRA"])
def test_what_is_kept_and_what_is_computed_again_is_the_same_to_the_bit(lora: bool) -> None:
    model, rows = build("Qwen3, tied head", lora), Rows()
    found = []
    for keep_bytes in (0, 9 * VOCABULARY * 4, 1 << 20):  # nothing, two chunks of four tokens, everything
        logprobs, entropy = completion_logprobs(
            model, rows.input_ids, rows.attention_mask, rows.length, temperature=0.7, chunk=4, keep_bytes=keep_bytes
        )
        found.append((logprobs.detach(), entropy, gradients(model, logprobs)))
    for logprobs, entropy, by_name in found[1:]:
        assert torch.equal(logprobs, found[0][0])
        assert torch.equal(entropy, found[0][1])
        for name, gradient in by_name.items():
            assert torch.equal(gradient, found[0][2][name]), name


def test_kept_probabilities_serve_one_backward_pass_and_a_second_one_is_refused() -> None:
    model, rows = build("Llama"), Rows()
    logprobs, _ = completion_logprobs(
        model, rows.input_ids, rows.attention_mask, rows.length, temperature=1.0, chunk=4, keep_bytes=1 << 20
    )
    logprobs.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logprobs.sum().backward()


def test_a_head_with_a_bias_gets_all_its_gradients() -> None:
    model, rows = build("Qwen3, head of its own"), Rows()
    head = torch.nn.Linear(32, VOCABULARY)
    model.set_output_embeddings(head)
    expected = gradients(model, rows.plain(model)[0])
    found = gradients(model, rows.chunked(model)[0])
    assert found.keys() == expected.keys()
    assert "lm_head.bias" in found
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["Qwen3, tied head", "Qwen3.5 MoE, with vision"])
def test_adapter_off_is_the_base_model(name: str) -> None:
    rows, base = Rows(), build(name)
    expected, _ = rows.chunked(base)
    adapted = build(name, lora=True)
    with adapted.disable_adapter(), torch.no_grad():
        reference, _ = rows.chunked(adapted)
    assert torch.equal(reference, expected)
    assert (rows.chunked(adapted)[0] - expected).abs().max() > 1e-2


def test_every_adapter_gets_a_gradient_under_gradient_checkpointing() -> None:
    model, rows = build("Qwen3.5 MoE, text", lora=True), Rows()
    expected = gradients(model, rows.chunked(model)[0])
    model.get_base_model().gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    found = gradients(model, rows.chunked(model)[0])
    adapters = [name for name, _ in model.named_parameters() if "lora_B" in name]
    assert adapters
    for name in adapters:
        assert found[name].abs().max() > 0, name
        assert torch.allclose(found[name], expected[name], atol=1e-5), name


def test_a_batch_of_empty_completions_gives_zeros() -> None:
    model, rows = build("Qwen3, head of its own"), Rows()
    rows.attention_mask[:, -rows.length :] = 0
    logprobs, entropy = rows.chunked(model)
    logprobs.sum().backward()
    assert logprobs.abs().sum() == entropy.abs().sum() == 0


# --- memory -----------------------------------------------------------------------------------------------------


class PeakMemory(TorchDispatchMode):
    """Most bytes that tensors made inside the block held at one moment."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in self.known:
                    self.known.add(storage.data_ptr())
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self.free, storage.data_ptr(), storage.nbytes())
        return result

    def free(self, address: int, size: int) -> None:
        self.known.discard(address)
        self.now -= size


WIDE = 8192


def peak_bytes(length: int, vocabulary: int, chunked: bool) -> int:
    """Of forward and backward over one completion, beyond a model that is already there."""
    sizes = SMALL | HEADS | {"vocab_size": vocabulary, "hidden_size": 8, "num_hidden_layers": 1}
    model = Qwen3ForCausalLM(Qwen3Config(**sizes, tie_word_embeddings=False)).eval()
    model.lm_head.requires_grad_(False)
    model.model.embed_tokens.requires_grad_(False)
    rows = Rows(prompts=(3,), completions=(length,))
    with PeakMemory() as memory:
        logprobs, _ = rows.chunked(model, 0.7, chunk=8) if chunked else rows.plain(model, 0.7)
        logprobs.sum().backward()
    return memory.peak


def test_memory_does_not_grow_with_completion_times_vocabulary() -> None:
    """Growth with the length is the transformer's own, the same for a vocabulary of 128 and of 8192."""

    def growth(vocabulary: int, chunked: bool) -> int:
        return peak_bytes(256, vocabulary, chunked) - peak_bytes(64, vocabulary, chunked)

    one_copy_of_the_logits = (256 - 64) * WIDE * 4
    assert growth(WIDE, chunked=True) - growth(128, chunked=True) < 0.05 * one_copy_of_the_logits
    assert peak_bytes(256, WIDE, chunked=True) < 0.5 * 256 * WIDE * 4
    # The control: the plain computation does grow, by several copies.
    assert growth(WIDE, chunked=False) - growth(128, chunked=False) > 2 * one_copy_of_the_logits


def test_the_vocabularys_share_of_the_memory_is_a_few_chunks_whatever_the_length() -> None:
    """Four copies of [chunk, V] in float32 at most: 2 GB with 512 tokens and 248,320 entries, where a whole completion
    of 8,192 tokens would hold 8 GB a copy."""
    one_copy_of_a_chunk = 8 * WIDE * 4
    for length in (64, 256, 1024):
        share = peak_bytes(length, WIDE, chunked=True) - peak_bytes(length, 128, chunked=True)
        assert 0 < share < 4 * one_copy_of_a_chunk, length


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [{"target_modules": ["q_proj", "lm_head"]}, {"modules_to_save": ["lm_head"]}])
def test_an_adapter_on_the_head_is_refused(place: dict[str, list[str]]) -> None:
    model = get_peft_model(build("Qwen3, head of its own"), LoraConfig(**({"target_modules": ["q_proj"]} | place)))
    with pytest.raises(ConfigError, match="lm_head"):
        decoder_and_head(model)


def test_prompt_tuning_is_refused() -> None:
    config = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    with pytest.raises(ConfigError, match="use LoRA"):
        decoder_and_head(get_peft_model(build("Qwen3, head of its own"), config))


def test_a_model_that_caps_its_logits_is_refused() -> None:
    with pytest.raises(ConfigError, match="final_logit_softcapping = 30"):
        decoder_and_head(Gemma2ForCausalLM(Gemma2Config(**SMALL, **HEADS)))


def test_a_model_without_a_head_is_refused() -> None:
    with pytest.raises(ConfigError, match="no language-modelling head"):
        decoder_and_head(build("Llama").model)


def test_a_quantised_head_is_refused() -> None:
    model = build("Llama")
    model.set_output_embeddings(torch.nn.Linear(32, VOCABULARY))
    model.get_output_embeddings().weight = torch.nn.Parameter(
        torch.zeros(VOCABULARY * 16, 1, dtype=torch.uint8), requires_grad=False
    )
    with pytest.raises(ConfigError, match="not quantised"):
        decoder_and_head(model)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"completion_length": 20}, "1 to 19 with 20 columns"),
        ({"completion_length": 0}, "completion_length is 0"),
        ({"temperature": 0.0}, "temperature is 0"),
        ({"chunk": 0}, "chunk is 0"),
    ],
)
def test_refuses(change: dict[str, Any], word: str) -> None:
    rows = Rows()
    arguments = {"completion_length": rows.length, "temperature": 1.0, "chunk": 4} | change
    with pytest.raises(ValueError, match=word):
        completion_logprobs(build("Llama"), rows.input_ids, rows.attention_mask, **arguments)
