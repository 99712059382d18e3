"""A counterexample as a plain pytest file, which needs torch and the network but not symcheck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from symcheck.engine.events import ignore
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.replay import generator_named, path_of
from symcheck.engine.networks.samples.counterexamples import KEEP, both_sides, relative_to_entries
from symcheck.engine.networks.subject.claims import Motion
from symcheck.engine.networks.subject.subject import random_state_kept
from symcheck.engine.networks.subject.values import AffineMap, SignedPermutation
from symcheck.engine.results import PropertyResult, RunResult
from symcheck.errors import SymcheckError
from symcheck.symmetry.symmetry import Symmetry

_TEMPLATE = '''"""{target} should be equivariant under {symmetry}; this input shows that it is not.

K f(x) = f(L x) for L on inputs and K on outputs, in {dtype}. Made from a counterexample; passes once the network is
fixed.
"""

import importlib.util
from pathlib import Path

import torch

TARGET = {target!r}
CHECKPOINT = {checkpoint!r}
SHAPE = {shape!r}
X = {{  # flat place: value; all other entries are 0
{entries}
}}
L = {input_motion}
K = {output_motion}
TOLERANCE = {tolerance!r}  # of the scale of each output entry
SCALES = {scales!r}


def load():
    source, _, name = TARGET.rpartition(":")
    if source.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(source).stem, source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(source)
    found = getattr(module, name)
    net = found if isinstance(found, torch.nn.Module) else found()
    if CHECKPOINT is not None:
        net.load_state_dict(torch.load(CHECKPOINT, weights_only=True))
    return net.to(torch.{dtype}).eval()


def moved(vector, motion):
    """Entry j goes to index[j], times sign[j]; or matrix @ vector + offset."""
    if "matrix" in motion:
        image = torch.tensor(motion["matrix"]).double() @ vector.double() + torch.tensor(motion["offset"]).double()
        return image.to(vector.dtype)
    result = torch.empty_like(vector)
    result[torch.tensor(motion["index"])] = vector * torch.tensor(motion["sign"]).to(vector.dtype)
    return result


def test_the_output_moves_as_claimed():
    net = load()
    x = torch.zeros(torch.Size(SHAPE).numel(), dtype=torch.{dtype})
    for place, value in X.items():
        x[place] = value
    with torch.no_grad():
        output = net(x.reshape(1, *SHAPE))
        image = net(moved(x, L).reshape(1, *SHAPE))
    expected = moved({pick_output}.reshape(-1), K)
    actual = {pick_image}.reshape(-1)
{comparison}
'''

_RESIDUAL = """    usual = torch.tensor(SCALES).double()
    sides = torch.stack([expected, actual]).abs().nan_to_num(0.0, 0.0, 0.0).amax(0)
    # over the entry's size on this input, but at least {least} of its usual scale, and an offset is no scale
    sizes = torch.minimum(torch.maximum(sides, {least} * usual), usual)
    residual = (torch.where(expected == actual, 0.0, (expected - actual).abs()) / sizes).max().item()
    assert residual <= TOLERANCE, f"K f(x) = {expected.tolist()}, but f(L x) = {actual.tolist()}"
""".replace("{least}", str(KEEP)).rstrip()
_DECISION = """    shown = f"K f(x) = {expected.tolist()}, but f(L x) = {actual.tolist()}"
    assert expected.argmax() == actual.argmax(), shown"""


def pytest_source(
    net: nn.Module,
    symmetry: Symmetry,
    result: RunResult,
    *,
    target: str,
    options: NetOptions | None = None,
    checkpoint: str | Path | None = None,
) -> str:
    """The source of a test that fails as long as the counterexample violates the claim.

    Args:
        net: the network.
        symmetry: the claim.
        result: the result of `run_net` on these, with a counterexample of `network_equivariance`.
        target: "module:name" or "file.py:name" of the network or its factory, from which the test loads it.
        options: the options of the run.
        checkpoint: a state dict for the test to load, if the run did.

    Returns:
        Python source; it imports torch only.

    Raises:
        SymcheckError: no failure with an input, a target without a name, or an action given by callables.
    """
    failed = _failed_property(result)
    if ":" not in target:
        raise SymcheckError(
            f"expected module:name or file.py:name, got {target!r}.",
            where="--pytest",
            remedy="A test can load a network only by the name of its factory.",
        )
    with random_state_kept():
        context = NetContext(net, symmetry, options or NetOptions(), ignore)
        # Determines shapes and claims, as a run does.
        context.check_fit()
    counterexample = failed.counterexample
    if counterexample is None:
        raise SymcheckError("no failure has an input, so there is no test to write.", where="--pytest")
    # The place "output[0][3]" lies in the output "output[0]".
    generator, path = generator_named(context, counterexample.group_element), path_of(context, counterexample.where)
    claim = context.claimed.output(path)
    x = np.asarray(counterexample.observation, dtype=np.float64).reshape(-1)
    scales = context.ruler.reference[path]
    sides = both_sides(context.claimed, claim, generator, x.reshape(1, *context.subject.shape))
    # a violation that float64 does not show concerns a decision of the deployed network
    shows = not (relative_to_entries(*sides, scales) <= (failed.tolerance or 0.0)).all()
    return _TEMPLATE.format(
        target=target,
        symmetry=symmetry.name,
        checkpoint=None if checkpoint is None else str(checkpoint),
        shape=context.subject.shape,
        # Only non-zero entries: a shrunk input has few.
        entries="\n".join(f"    {place}: {float(x[place])!r}," for place in np.flatnonzero(x).tolist()),
        input_motion=_as_literal(context.inputs.motions[generator]),
        output_motion=_as_literal(claim.motions[generator]),
        tolerance=failed.tolerance,
        scales=[float(f"{size:.6g}") for size in scales.filled],
        dtype="float64" if shows else str(context.subject.dtype).removeprefix("torch."),
        comparison=_RESIDUAL if shows else _DECISION,
        pick_output=path,
        # The path is an expression such as "output[0]"; the image's path differs only in the variable.
        pick_image=path.replace("output", "image", 1),
    )


def _failed_property(result: RunResult) -> PropertyResult:
    for item in result.properties:
        if item.name == "network_equivariance" and item.verdict == "failed" and item.counterexample is not None:
            return item
    raise SymcheckError(
        "no failure has an input, so there is no test to write.",
        where="--pytest",
        remedy="Omit the option: a network that passed needs no regression test.",
    )


def _as_literal(motion: Motion) -> dict[str, Any]:
    if isinstance(motion, SignedPermutation):
        return {"index": motion.index.tolist(), "sign": motion.sign.tolist()}
    if isinstance(motion, AffineMap):
        return {"matrix": motion.matrix.tolist(), "offset": motion.offset.tolist()}
    raise SymcheckError(
        "the group action is a callable, so it cannot be written into a test file.",
        where="--pytest",
        remedy="Write the maps as data: signs, a permutation or a matrix.",
    )
