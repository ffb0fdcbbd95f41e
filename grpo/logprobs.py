"""Log-probabilities and entropies of completion tokens, without ever holding the logits of a whole completion.

    z = logits / temperature,   logp_t = z_t[token_t] - logsumexp(z_t),   H_t = logsumexp(z_t) - sum softmax(z_t) z_t

The transformer under the head runs once; the head is applied to the completion's own positions only, `chunk` tokens at
a time, and what a chunk computed is thrown away and computed again in its backward. Peak memory is a few copies of
[chunk, V] in float32 instead of [B, T, V]. Reductions over the vocabulary are in float32. The distribution is the full
softmax at the temperature: top_k, top_p and penalties shape sampling only.

Works for transformers' *ForCausalLM and *ForConditionalGeneration (text only), adapted by peft or not: LoRA layers sit
inside the transformer, so `with model.disable_adapter():` around the call gives the reference.
Refused, for each would be ignored here: an adapter on the head, prompt-learning adapters, models that rescale logits.
Left out: packing of several sequences into one row.

Shapes: _B sequences, _S prompt and completion together, _T completion tokens, _N completion tokens of all sequences
without padding, _H hidden size, _V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from render.errors import ConfigError

# Names under which configurations keep a factor or cap that forward() applies to the logits after the head.
_LOGIT_TRANSFORMS = ("final_logit_softcapping", "logit_scale", "logits_scaling", "output_multiplier_scale")


def decoder_and_head(model: Any) -> tuple[nn.Module, nn.Module]:
    """The transformer that ends in the final norm's hidden states, and the linear head [V, H] after it.

    Raises ConfigError when log-probabilities from these two would not be the model's own.
    """
    if hasattr(model, "peft_config"):
        if getattr(model.active_peft_config, "is_prompt_learning", False):
            raise ConfigError("prompt-learning adapters (prefix, prompt tuning) are not supported: use LoRA")
        model = model.get_base_model()
    head = model.get_output_embeddings()
    if head is None:
        raise ConfigError(f"{type(model).__name__} has no language-modelling head: a *ForCausalLM class is needed")
    if next(head.children(), None) is not None:
        raise ConfigError(
            "an adapter sits on the language-modelling head (lm_head): take lm_head out of the adapter's target modules"
        )
    config = model.config.get_text_config()
    for name in _LOGIT_TRANSFORMS:
        if getattr(config, name, None) not in (None, 1, 1.0):
            raise ConfigError(
                f"{type(model).__name__} changes its logits after the head ({name} = {getattr(config, name)}): "
                "such models are not supported"
            )
    return model.get_decoder(), head


def completion_logprobs(
    model: Any,
    input_ids_BS: Tensor,
    attention_mask_BS: Tensor | None,
    completion_length: int,
    *,
    temperature: float,
    chunk: int = 512,
) -> tuple[Tensor, Tensor]:
    """(logprobs_BT, entropy_BT) in float32 of the last `completion_length` columns; entropy has no gradient.

    input_ids_BS: left-padded prompts followed by right-padded completions, so that all completions begin in column
    S - T. attention_mask_BS: 1 on real tokens, 0 on both kinds of padding; None only when there is no padding at all.
    Positions count real tokens only, so that left padding does not shift a sequence.
    Values at padding are 0. temperature: the one that the tokens were sampled with.
    Under torch.no_grad() the same values are computed without anything to recompute.
    """
    batch, length = input_ids_BS.shape
    if not 0 < completion_length < length:
        raise ValueError(f"completion_length is {completion_length}: 1 to {length - 1} with {length} columns")
    if temperature <= 0 or chunk < 1:
        raise ValueError(f"temperature is {temperature} and chunk is {chunk}: above 0 and at least 1")
    decoder, head = decoder_and_head(model)
    if attention_mask_BS is None:
        position_ids_BS = torch.arange(length, device=input_ids_BS.device).expand(batch, length)
        real_BT = torch.ones(batch, completion_length, dtype=torch.bool, device=input_ids_BS.device)
    else:
        position_ids_BS = (attention_mask_BS.long().cumsum(-1) - 1).clamp(min=0)
        real_BT = attention_mask_BS[:, -completion_length:].bool()

    hidden_BSH = decoder(
        input_ids=input_ids_BS, attention_mask=attention_mask_BS, position_ids=position_ids_BS, use_cache=False
    ).last_hidden_state
    # The hidden state in one column predicts the token in the next.
    hidden_NH = hidden_BSH[:, -completion_length - 1 : -1][real_BT]
    tokens_N = input_ids_BS[:, -completion_length:][real_BT]

    logprobs, entropies = [], []
    for hidden_chunk, tokens_chunk in zip(hidden_NH.split(chunk), tokens_N.split(chunk), strict=True):
        if torch.is_grad_enabled():
            logprob, entropy = checkpoint(
                _project, head, hidden_chunk, tokens_chunk, temperature, use_reentrant=False, preserve_rng_state=False
            )
        else:
            logprob, entropy = _project(head, hidden_chunk, tokens_chunk, temperature)
        logprobs.append(logprob)
        entropies.append(entropy)

    zeros_BT = torch.zeros(batch, completion_length, device=input_ids_BS.device)
    return (
        zeros_BT.masked_scatter(real_BT, torch.cat(logprobs)),
        zeros_BT.masked_scatter(real_BT, torch.cat(entropies)),
    )


def _project(head: nn.Module, hidden_NH: Tensor, tokens_N: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probability and entropy of one chunk of tokens."""
    logits_NV = head(hidden_NH).float()
    if temperature != 1.0:
        logits_NV = logits_NV / temperature
    normalizer_N = torch.logsumexp(logits_NV, dim=-1)
    logprobs_N = logits_NV.gather(-1, tokens_N[:, None]).squeeze(-1) - normalizer_N
    # After everything that backward needs: the recomputation stops before it reaches the entropy.
    with torch.no_grad():
        probabilities_NV = (logits_NV - normalizer_N[:, None]).exp_()
        entropy_N = normalizer_N - probabilities_NV.mul_(logits_NV).sum(-1)
    return logprobs_N, entropy_N
