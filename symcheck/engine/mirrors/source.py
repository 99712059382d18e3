"""The correct mirror function of a layout, as source code or as a SPEC file.

Indices and signs are literals, so the generated code does not depend on symcheck and can be reviewed line by line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcheck.errors import OptionError, SpecError
from symcheck.mujoco.layouts.laid_out import LaidGroup, LaidOut

FORMS = ("rsl_rl", "isaaclab", "spec")

_HEAD = '''"""{title}.

Derived from {model} for the layout {layout} by symcheck; block 0 is the batch itself.
"""

import torch

# For each group and block: column i of the image is column index[i] of the batch, times sign[i].
INDEX = {{
{index}}}
SIGN = {{
{sign}}}


def _images(name, batch):
    """All blocks of one group, one after the other."""
    blocks = [batch]
    for index, sign in zip(INDEX[name], SIGN[name]):
        blocks.append(batch[..., index] * torch.tensor(sign, dtype=batch.dtype, device=batch.device))
    return torch.cat(blocks, dim=0)

'''
_RSL_RL = '''
@torch.no_grad()
def data_augmentation_func(env=None, obs=None, actions=None, obs_type="policy"):
    """Images of observations (a tensor of one group, or groups by name) and of actions; None stays None."""
    if obs is not None:
        if isinstance(obs, torch.Tensor):
            obs = _images(obs_type if obs_type in INDEX else next(iter(INDEX)), obs)
        else:
            parts = {name: _images(name, obs[name]) if name in INDEX else _repeated(obs[name]) for name in obs.keys()}
            rows = len(next(iter(parts.values())))
            obs = parts if isinstance(obs, dict) else type(obs)(parts, batch_size=[rows])
    return obs, None if actions is None else _images("action", actions)


def _repeated(batch):
    """A group that the layout does not have: copied into every block."""
    return batch.repeat(1 + len(INDEX["action"]), *([1] * (batch.dim() - 1)))
'''
_ISAACLAB = '''
@torch.no_grad()
def compute_symmetric_states(env=None, obs=None, actions=None):
    """Images of a TensorDict of observation groups and of actions; None stays None."""
    if obs is not None:
        count = 1 + len(INDEX["action"])
        images = obs.repeat(count)
        for name in obs.keys():
            if name in INDEX:
                images[name][:] = _images(name, obs[name])
        obs = images
    return obs, None if actions is None else _images("action", actions)
'''


def mirror_source(laid: LaidOut, form: str) -> str:
    """The correct mirror function of a layout.

    Args:
        laid: the layout applied to a robot.
        form: "rsl_rl" (tensors or groups, with obs_type), "isaaclab" (a TensorDict) or "spec" (a SPEC file).

    Returns:
        Python source, or TOML.

    Raises:
        OptionError: an unknown form.
        SpecError: the layout has no observation, or a column combines several others.
    """
    if form not in FORMS:
        raise OptionError(f"expected {', '.join(FORMS)}, got {form!r}.", where="--emit")
    if not laid.observation:
        raise SpecError("no observation group is listed, so there is nothing to write.", where=laid.written.label)
    return _spec(laid) if form == "spec" else _python(laid, form)


def _python(laid: LaidOut, form: str) -> str:
    groups = {**laid.observation, "action": laid.action}
    index, sign = {}, {}
    for name, group in groups.items():
        maps = [_signed(group, element) for element in range(len(group.matrices))]
        index[name], sign[name] = [m[0] for m in maps], [m[1] for m in maps]
    title = f"The {laid.name} of {laid.robot.label}"
    head = _HEAD.format(
        title=title,
        model=laid.robot.label,
        layout=laid.written.label,
        index=_literal(index),
        sign=_literal(sign),
    )
    return head + (_RSL_RL if form == "rsl_rl" else _ISAACLAB)


def _literal(table: dict[str, Any]) -> str:
    lines = []
    for name, blocks in table.items():
        rows = "".join(f"        {_wrapped(block)},\n" for block in blocks)
        lines.append(f"    {name!r}: [\n{rows}    ],\n")
    return "".join(lines)


def _wrapped(values: list[int]) -> str:
    texts = [str(value) for value in values]
    lines = [", ".join(texts[i : i + 24]) for i in range(0, len(texts), 24)]
    return "[" + (",\n         ".join(lines)) + "]"


def _signed(group: LaidGroup, element: int) -> tuple[list[int], list[int]]:
    """The source column of each column of the image, and its sign."""
    matrix = group.matrices[element]
    counts = np.diff(matrix.indptr)
    if (counts != 1).any() or not np.allclose(np.abs(matrix.data), 1) or group.offsets[element].any():
        mixed = [group.full_label(int(c)) for c in np.flatnonzero(counts != 1)[:4]]
        raise SpecError(
            "only exchanges and sign changes can be written, but some columns combine several columns or "
            f"are shifted ({', '.join(mixed)}).",
            where=f"--emit, {group.name}",
        )
    return matrix.indices.tolist(), np.sign(matrix.data).astype(int).tolist()


def _spec(laid: LaidOut) -> str:
    group = {"V4": "klein_four()", "C4": "C4"}.get(laid.group.name, laid.group.name)
    lines = [f'name = "{laid.robot.label} {laid.name}"', f'group = "{group}"']
    observed = {name: _entries(laid, part) for name, part in laid.observation.items()}
    if len(observed) == 1:
        lines.append(f"observation = {_toml(next(iter(observed.values())))}")
    else:
        # One mapping per generator, by group.
        generators = range(len(laid.robot.pairings))
        parts = [
            "{ " + ", ".join(f'"{name}" = {_words(rows[k])}' for name, rows in observed.items()) + " }"
            for k in generators
        ]
        lines.append(f"observation = [{', '.join(parts)}]")
    lines.append(f"action = {_toml(_entries(laid, laid.action))}")
    return "\n".join(lines) + "\n"


def _entries(laid: LaidOut, group: LaidGroup) -> list[list[str]]:
    """Signed one-based images, one list per generator."""
    elements = laid.group.elements()[1:]
    entries = []
    for generator in laid.group.generators:
        sources, signs = _signed(group, elements.index(generator))
        images = [""] * group.width
        # Column `source` maps to `place`: its image is +-(place + 1).
        for place, (source, sign) in enumerate(zip(sources, signs, strict=True)):
            images[source] = f"{'-' if sign < 0 else '+'}{place + 1}"
        entries.append(images)
    return entries


def _toml(entries: list[list[str]]) -> str:
    return f"[{', '.join(_words(entry) for entry in entries)}]"


def _words(entry: list[str]) -> str:
    return "[" + ", ".join(f'"{image}"' for image in entry) + "]"
