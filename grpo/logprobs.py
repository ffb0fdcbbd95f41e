"""Log-probabilities and entropies of completion tokens, without ever holding the logits of a whole completion.

    z = logits / temperature,   logp_t = z_t[token_t] - logsumexp(z_t),   H_t = logsumexp(z_t) - sum softmax(z_t) z_t

The transformer under the head runs once; the head is applied to the completion's own positions only, `chunk` tokens at
a time. The gradient by the logits is written down, not left to autograd:

    dlogp_t / dz = onehot(token_t) - softmax(z_t)

so that a chunk leaves nothing but its probabilities behind, and those only as far as `keep_bytes` goes; what is not
kept is computed again in the backward pass. Peak memory is keep_bytes and a few copies of [chunk, V] in float32 instead
of [B, T, V]. Reductions over the vocabulary are in float32. The distribution is the full softmax at the temperature:
top_k, top_p and penalties shape sampling only.

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
from torch.autograd.function import once_differentiable

from render.errors import ConfigError

# Names under which configurations keep a factor or cap that forward() applies to the logits after the head.
_LOGIT_TRANSFORMS = ("final_logit_softcapping", "logit_scale", "logits_scaling", "output_multiplier_scale")


def decoder_and_head(model: Any) -> tuple[nn.Module, nn.Linear]:
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
    if not (isinstance(head, nn.Linear) and head.weight.is_floating_point()):
        raise ConfigError(
            f"the language-modelling head is a {type(head).__name__}: a linear layer that is not quantised is needed"
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
    keep_bytes: int = 0,
) -> tuple[Tensor, Tensor]:
    """(logprobs_BT, entropy_BT) in float32 of the last `completion_length` columns; entropy has no gradient.

    input_ids_BS: left-padded prompts followed by right-padded completions, so that all completions begin in column
    S - T. attention_mask_BS: 1 on real tokens, 0 on both kinds of padding; None only when there is no padding at all.
    Positions count real tokens only, so that left padding does not shift a sequence.
    Values at padding are 0. temperature: the one that the tokens were sampled with.
    Under torch.no_grad() the same values are computed and nothing is kept.
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

    logprobs_N, entropy_N = _HeadLogprobs.apply(
        hidden_NH,
        head.weight,
        head.bias,
        tokens_N,
        temperature,
        chunk,
        keep_bytes if torch.is_grad_enabled() else 0,
    )
    zeros_BT = torch.zeros(batch, completion_length, device=input_ids_BS.device)
    return zeros_BT.masked_scatter(real_BT, logprobs_N), zeros_BT.masked_scatter(real_BT, entropy_N)


class _HeadLogprobs(torch.autograd.Function):
    """hidden_NH, head -> log-probability [N] of tokens_N and entropy [N] (without gradient), chunk by chunk.

    One backward pass only: it is computed in place of the probabilities that were kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_NH: Tensor,
        weight_VH: Tensor,
        bias_V: Tensor | None,
        tokens_N: Tensor,
        temperature: float,
        chunk: int,
        keep_bytes: int,
    ) -> tuple[Tensor, Tensor]:
        normalizer_N = torch.empty(len(tokens_N), device=tokens_N.device)
        logprobs_N, entropy_N = torch.empty_like(normalizer_N), torch.empty_like(normalizer_N)
        kept = []
        for rows in _chunks(len(tokens_N), chunk):
            logits_CV = _logits(hidden_NH[rows], weight_VH, bias_V, temperature)
            normalizer_N[rows] = logits_CV.logsumexp(-1)
            logprobs_N[rows] = logits_CV.gather(-1, tokens_N[rows, None]).squeeze(-1) - normalizer_N[rows]
            probabilities_CV = (logits_CV - normalizer_N[rows, None]).exp_()
            entropy_N[rows] = normalizer_N[rows] - logits_CV.mul_(probabilities_CV).sum(-1)
            size = probabilities_CV.nbytes
            if size <= keep_bytes:
                keep_bytes -= size
                kept.append(probabilities_CV)
            else:
                keep_bytes = 0
        ctx.save_for_backward(hidden_NH, weight_VH, bias_V, tokens_N, normalizer_N, *kept)
        ctx.temperature, ctx.chunk = temperature, chunk
        ctx.mark_non_differentiable(entropy_N)
        return logprobs_N, entropy_N

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_N: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        hidden_NH, weight_VH, bias_V, tokens_N, normalizer_N, *kept = ctx.saved_tensors
        by_hidden, by_weight, by_bias = ctx.needs_input_grad[:3]
        hidden_grad_NH = torch.empty_like(hidden_NH) if by_hidden else None
        # Sums over chunks in float32 whatever the weights are in.
        weight_grad_VH = torch.zeros_like(weight_VH, dtype=torch.float32) if by_weight else None
        bias_grad_V = torch.zeros_like(bias_V, dtype=torch.float32) if by_bias else None
        for index, rows in enumerate(_chunks(len(tokens_N), ctx.chunk)):
            if index < len(kept):
                grad_CV = kept[index]
            else:
                logits_CV = _logits(hidden_NH[rows], weight_VH, bias_V, ctx.temperature)
                grad_CV = logits_CV.sub_(normalizer_N[rows, None]).exp_()
            grad_CV.mul_(-grad_N[rows, None]).scatter_add_(-1, tokens_N[rows, None], grad_N[rows, None])
            if ctx.temperature != 1.0:
                grad_CV.div_(ctx.temperature)
            if bias_grad_V is not None:
                bias_grad_V += grad_CV.sum(0)
            grad_CV = grad_CV.to(weight_VH.dtype)
            if hidden_grad_NH is not None:
                hidden_grad_NH[rows] = grad_CV @ weight_VH
            if weight_grad_VH is not None and weight_VH.dtype == torch.float32:
                weight_grad_VH.addmm_(grad_CV.t(), hidden_NH[rows])
            elif weight_grad_VH is not None:
                weight_grad_VH += grad_CV.t() @ hidden_NH[rows]
        return (
            hidden_grad_NH,
            None if weight_grad_VH is None else weight_grad_VH.to(weight_VH.dtype),
            None if bias_grad_V is None else bias_grad_V.to(weight_VH.dtype),
            *[None] * 4,
        )


def _chunks(count: int, chunk: int) -> list[slice]:
    return [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]


def _logits(hidden_CH: Tensor, weight_VH: Tensor, bias_V: Tensor | None, temperature: float) -> Tensor:
    """z of one chunk [C, V] in float32, in memory of its own."""
    logits_CV = nn.functional.linear(hidden_CH, weight_VH, bias_V).float()
    return logits_CV if temperature == 1.0 else logits_CV.div_(temperature)
