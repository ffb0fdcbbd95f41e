"""What the policy samples is what it says it samples, and what is trained on is what was sampled."""

import pytest
import torch
from parts import byte_tokenizer, tiny_model, tiny_policy
from transformers import GenerationConfig

from grpo.adapter import lora_targets
from grpo.config import LoraSettings, SampleSettings
from grpo.policy import Policy, collate, stop_ids
from render.errors import ConfigError

PROMPT = [1, 40, 41, 42, 2]
SHAPED = SampleSettings(
    max_completion_length=24, temperature=0.7, top_p=0.9, top_k=50, min_p=0.01, repetition_penalty=1.1
)


@pytest.mark.parametrize("settings", [SampleSettings(max_completion_length=8), SHAPED])
def test_the_distribution_in_force_is_the_configs(settings: SampleSettings) -> None:
    tiny_policy().assert_sampling(PROMPT, settings)


@pytest.mark.parametrize("leak", [{"top_k": 1}, {"repetition_penalty": 1.3}, {"temperature": 0.5}])
def test_a_sampler_that_something_else_shapes_is_refused(leak: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tiny_policy()
    honest = policy.generation_config

    def leaking(settings: SampleSettings, count: int) -> GenerationConfig:
        config = honest(settings, count)
        config.update(**leak)
        return config

    monkeypatch.setattr(policy, "generation_config", leaking)
    with pytest.raises(ConfigError, match="does not draw from the distribution"):
        policy.assert_sampling(PROMPT, SampleSettings(max_completion_length=8))


def test_a_checkpoints_own_sampling_settings_do_not_leak() -> None:
    tokenizer = byte_tokenizer()
    model = tiny_model(tokenizer)
    model.generation_config = GenerationConfig(do_sample=True, top_k=1, repetition_penalty=1.5, eos_token_id=2)
    policy = Policy(model, tokenizer, None)
    drawn = policy.sample(PROMPT, 16, SampleSettings(max_completion_length=4), seed=0)
    assert len({completion.ids for completion in drawn}) > 12


def test_the_kind_of_cache_does_not_change_the_tokens() -> None:
    policy, prompts = tiny_policy(), [PROMPT, PROMPT[:3], PROMPT]
    grown, static = (
        policy.sample_rows(prompts, SampleSettings(max_completion_length=24, cache=cache), 0)
        for cache in ("dynamic", "static")
    )
    assert grown == static
    assert policy.generation_config(SampleSettings(cache="static"), 1).cache_implementation == "static"


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others() -> None:
    policy, settings = tiny_policy(), SampleSettings(max_completion_length=12)
    first, again, other = (policy.sample(PROMPT, 3, settings, seed) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_a_row_is_handed_over_when_its_stop_id_appears_while_others_go_on() -> None:
    policy, settings = tiny_policy(), SampleSettings(max_completion_length=200)
    policy.eos_ids = (2, *range(100, 130))  # an eighth of the vocabulary ends a row: rows end at different tokens
    handed, at = {}, {}
    count = [0]

    def finished(row: int, completion: object) -> None:
        handed[row], at[row] = completion, count[0]

    def token(number: int) -> None:
        count[0] = number

    drawn = policy.sample(PROMPT, 6, settings, 0, on_finished=finished, on_token=token)
    assert handed == dict(enumerate(drawn))
    for row, completion in enumerate(drawn):
        assert completion.finished
        assert completion.ids[-1] in policy.eos_ids
        assert not set(completion.ids[:-1]) & set(policy.eos_ids)
        assert at[row] == len(completion.ids) - 1
    assert len(set(at.values())) > 1


def test_a_completion_without_stop_id_is_cut_and_says_so() -> None:
    policy = tiny_policy()
    policy.model.get_output_embeddings().register_forward_hook(
        lambda module, args, logits: logits.index_fill(-1, torch.tensor(policy.eos_ids), -1e9)
    )
    drawn = policy.sample(PROMPT, 2, SampleSettings(max_completion_length=5), 0)
    assert [(len(completion.ids), completion.finished) for completion in drawn] == [(5, False)] * 2


def test_stop_ids_are_the_union_of_tokenizer_and_checkpoint() -> None:
    tokenizer = byte_tokenizer()
    model = tiny_model(tokenizer)
    model.generation_config = GenerationConfig(eos_token_id=[2, 0, 77])
    assert stop_ids(model, tokenizer) == (2, 0, 77)


def test_sampling_feeds_the_prompt_once_then_one_token_at_a_time_with_checkpointing_on() -> None:
    policy = tiny_policy(checkpointing=True)
    policy.model.train()
    fed: list[int] = []
    decoder = policy.model.get_base_model().get_decoder()
    decoder.register_forward_pre_hook(
        lambda module, args, kwargs: fed.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    policy.sample(PROMPT, 2, SampleSettings(max_completion_length=6), 0)
    assert fed[0] == len(PROMPT)
    assert set(fed[1:]) == {1}


@pytest.mark.parametrize("checkpointing", [False, True])
def test_every_adapter_matrix_gets_a_gradient(checkpointing: bool) -> None:
    policy = tiny_policy(checkpointing=checkpointing)
    policy.model.train()
    batch = collate([PROMPT], [[50, 51, 52, 2]], policy.pad_id, "cpu")
    policy.logprobs(batch, 1.0, 2)[0].sum().backward()
    empty = [name for name, weight in policy.trainable().items() if "lora_B" in name and not weight.grad.any()]
    assert empty == []
    assert len(policy.adapted) == 14


def test_logprobs_of_a_padded_batch_equal_those_of_each_sequence_alone() -> None:
    policy = tiny_policy()
    prompts, completions = [PROMPT, PROMPT[:2]], [[50, 51, 2], [60, 61, 62, 63, 2]]
    with torch.no_grad():
        together = policy.logprobs(collate(prompts, completions, policy.pad_id, "cpu"), 0.8, 4)[0]
        for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            alone = policy.logprobs(collate([prompt], [completion], policy.pad_id, "cpu"), 0.8, 4)[0]
            torch.testing.assert_close(together[row, : len(completion)], alone[0], atol=1e-5, rtol=0)


def test_the_adapter_is_the_model_itself_at_first_and_off_in_the_reference() -> None:
    policy = tiny_policy()
    batch = collate([PROMPT], [[50, 51, 52, 2]], policy.pad_id, "cpu")
    with torch.no_grad():
        before = policy.logprobs(batch, 1.0, 8)[0]
        for name, weight in policy.trainable().items():
            if "lora_B" in name:
                weight.normal_()
        after = policy.logprobs(batch, 1.0, 8)[0]
        with policy.reference():
            reference = policy.logprobs(batch, 1.0, 8)[0]
    assert not torch.allclose(before, after)
    torch.testing.assert_close(before, reference, atol=0, rtol=0)


def test_a_target_that_matches_nothing_is_refused_and_the_head_is_never_adapted() -> None:
    model = tiny_model(byte_tokenizer())
    with pytest.raises(ConfigError, match=r"no linear layer is called q_project; there are .*q_proj"):
        lora_targets(model, ("q_project",))
    assert not any("lm_head" in name for name in lora_targets(model, "all-linear"))
    assert len(lora_targets(model, ("q_proj", "v_proj"))) == 4


def test_two_adapters_of_one_config_start_equal_whatever_was_drawn_before() -> None:
    first = tiny_policy()
    torch.rand(100)
    second = Policy(tiny_model(byte_tokenizer()), byte_tokenizer(), LoraSettings(rank=4, alpha=8))
    for name, weight in first.trainable().items():
        assert torch.equal(weight, second.trainable()[name])
