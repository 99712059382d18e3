"""Attention, followed as products of queries and keys, masks, a softmax and means of values.

Tokens, heads and channels may move as long as every query meets the keys and values that belong to it, and a mask may
be there as long as it moves along: the rules of these operations see to that.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from symcheck.engine.networks.compositions import composition


@composition("scaled_dot_product_attention")
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor | None:
    """softmax(q k^T + mask) v over the last two axes, shapes (..., queries, d), (..., keys, d), (..., keys, e)."""
    # Refused: dropout, which draws; grouped heads; two masks at once.
    if dropout_p or enable_gqa or (is_causal and attn_mask is not None):
        return None
    if is_causal:
        # Query i attends to keys 0 .. i.
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = _additive(~attn_mask)
    return _weights(query, key, attn_mask, scale) @ value


def _weights(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, scale: float | None = None
) -> torch.Tensor:
    """How much each query attends to each key, shape (..., queries, keys)."""
    # Scores of (..., queries, keys); 1 / sqrt(d) keeps their variance at 1.
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    return torch.softmax(scores if mask is None else scores + mask, -1)


def _additive(left_out: torch.Tensor) -> torch.Tensor:
    """Minus infinity where a key is left out, else 0; a mask of numbers as it is."""
    if left_out.dtype != torch.bool:
        return left_out
    return torch.zeros(left_out.shape, dtype=torch.float64).masked_fill(left_out, float("-inf"))


def _joint_mask(of_pairs: torch.Tensor | None, of_keys: torch.Tensor | None, heads: int) -> torch.Tensor | None:
    """Masks (queries, keys) or (batch * heads, queries, keys), and (batch, keys), as one for all heads."""
    if of_pairs is not None:
        of_pairs = _additive(of_pairs)
        # (batch * heads, queries, keys) to (batch, heads, queries, keys).
        of_pairs = torch.unflatten(of_pairs, 0, (-1, heads)) if of_pairs.dim() == 3 else of_pairs
    if of_keys is None:
        return of_pairs
    # Broadcast over heads and queries.
    keys = _additive(of_keys)[:, None, None, :]
    return keys if of_pairs is None else of_pairs + keys


@composition("multi_head_attention_forward")
def multi_head_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: torch.Tensor | None,
    in_proj_bias: torch.Tensor | None,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: torch.Tensor,
    out_proj_bias: torch.Tensor | None,
    training: bool = True,
    key_padding_mask: torch.Tensor | None = None,
    need_weights: bool = True,
    attn_mask: torch.Tensor | None = None,
    **rest: Any,
) -> Any:
    """Projections, heads, attention, a last projection; tokens (length, batch, channels). Weights where asked for."""
    others = (bias_k, bias_v, rest.get("static_k"), rest.get("static_v"))
    if any(item is not None for item in others) or add_zero_attn or rest.get("is_causal") or query.dim() != 3:
        return None
    if in_proj_weight is None or (training and dropout_p):
        return None
    # The joint projection holds those of query, key and value, one after the other.
    biases = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    parts = zip((query, key, value), in_proj_weight.chunk(3), biases, strict=True)
    # (length, batch, heads * d) to (batch, heads, length, d).
    q, k, v = (torch.unflatten(F.linear(x, w, b), -1, (num_heads, -1)).permute(1, 2, 0, 3) for x, w, b in parts)
    weights = _weights(q, k, _joint_mask(attn_mask, key_padding_mask, num_heads))
    # Back to (length, batch, channels): heads are joined before the last projection.
    out = F.linear((weights @ v).permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if rest.get("average_attn_weights", True) else weights
