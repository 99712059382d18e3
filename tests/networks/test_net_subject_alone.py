"""A network that is run, and what a run asks of it, by themselves: passes, rows, errors, memory, batches and doubts."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from symcheck.engine.clock import TimeUp
from symcheck.engine.networks import context as contexts
from symcheck.engine.networks.blame.proof import Compared, Proof
from symcheck.engine.networks.context import NetContext
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.samples.measuring import Deployed
from symcheck.engine.networks.samples.repeatability import check_repeatability, residual_of_mixed_batch
from symcheck.engine.networks.samples.ruler import ROUNDED
from symcheck.engine.networks.subject import subject as subjects
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim
from symcheck.engine.networks.subject.subject import Subject, random_state_kept
from symcheck.engine.networks.subject.values import LayerRecord, Opaque, SignedPermutation
from symcheck.errors import OptionError, TargetError
from symcheck.statements.statement import state

ANY: Any = None
X = np.random.default_rng(0).normal(size=(5, 3))
SWAP = SignedPermutation(np.array([1, 0, 2]), np.array([1, 1, 1]))
INPUTS = InputClaim((3,), (SWAP,))
SAME = OutputClaim("output", "observation", 3, (SWAP,))


class Net(nn.Module):
    """Any function of a batch, with one parameter."""

    def __init__(self, function: Any = lambda x: 2 * x) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.function = function
        self.sizes: list[int] = []

    def forward(self, x: torch.Tensor) -> Any:
        self.sizes.append(len(x))
        return self.function(x)


def subject_of(function: Any = lambda x: 2 * x, **more: Any) -> Subject:
    return Subject(Net(function), (3,), **more)


def test_both_copies_answer_in_float64_rows_by_path() -> None:
    subject = subject_of(lambda x: {"a": x, "b": (x[:, :1, None], x.sum(dim=1))})
    for exact in (True, False):
        made = subject.run(X, exact=exact)
        assert sorted(made) == ["output['a']", "output['b'][0]", "output['b'][1]"]
        assert {rows.dtype for rows in made.values()} == {np.dtype(np.float64)}
        assert [made[path].shape for path in sorted(made)] == [(5, 3), (5, 1), (5, 1)]
        np.testing.assert_allclose(
            made["output['b'][1]"][:, 0], X.sum(axis=1), rtol=1e-12 if exact else 1e-5, atol=1e-6
        )
    assert subject.shapes() == {"output['a']": (3,), "output['b'][0]": (1, 1), "output['b'][1]": ()}
    assert np.array_equal(subject.run(X, exact=True)["output['a']"], X)
    assert not np.array_equal(subject.run(X, exact=False)["output['a']"], X)


def test_outputs_that_are_no_real_numbers_are_listed_and_not_compared() -> None:
    subject = subject_of(lambda x: (x, x > 0))
    assert list(subject.run(X, exact=False)) == ["output[0]"]
    assert subject.not_judged == {"output[1]": "torch.bool"}
    with pytest.raises(TargetError, match=r"no output consists of real numbers; .* output of torch\.int64"):
        subject_of(lambda x: x.long()).shapes()


@pytest.mark.parametrize("function", [lambda x: x[:-1], lambda x: x.sum(), lambda x: x.t()])
def test_an_output_has_one_row_per_input(function: Any) -> None:
    with pytest.raises(TargetError, match="its first axis is not the batch"):
        subject_of(function).run(X, exact=True)


def test_passes_have_as_many_inputs_as_fit() -> None:
    subject = subject_of()
    net: Any = subject.exact
    net.sizes.clear()
    subject.run(np.zeros((16_385, 3)), exact=True)
    assert net.sizes == [16_384, 1]
    wide = Subject(Net(), (500_000,))
    wide.exact.sizes.clear()  # type: ignore[operator,union-attr]
    wide.run(np.zeros((5, 500_000)), exact=True)
    assert wide.exact.sizes == [4, 1]
    alone = subject.taking_one_by_one()
    net.sizes.clear()
    np.testing.assert_array_equal(alone.run(X, exact=True)["output"], subject.run(X, exact=True)["output"])
    assert net.sizes == [1] * 5 + [5]
    assert (subject.one_by_one, alone.one_by_one) == (False, True)
    assert alone.cost > subject.cost


def test_a_network_for_one_input_is_noticed_and_a_broken_one_is_not_taken_for_it() -> None:
    def only_one(x: torch.Tensor) -> torch.Tensor:
        return x.view(1, 3)

    assert subject_of(only_one).one_by_one
    assert not subject_of().one_by_one
    assert not subject_of(lambda x: x.view(7, 3)).one_by_one


def test_one_input_in_train_mode_is_run_twice() -> None:
    subject = Subject(nn.BatchNorm1d(3), (3,), mode="train")
    assert subject.training
    made = subject.run(X[:1], exact=True)["output"]
    assert made.shape == (1, 3)
    np.testing.assert_allclose(made, 0.0, atol=1e-6)
    assert subject.run(X, exact=True)["output"].std() > 0.5


def fussy(x: torch.Tensor) -> torch.Tensor:
    if (x[:, 0] > 100).any():
        raise ValueError("too large")
    return x


def test_an_error_is_told_with_the_input_that_raises_it() -> None:
    subject = subject_of(fussy)
    subject.run(X, exact=False)
    bad = X.copy()
    bad[3, 0] = 1000.0
    with pytest.raises(
        TargetError, match=r"raised ValueError: too large on the input \[ 1\.0000e\+03, .*\(shape \(3,\)\)"
    ):
        subject.run(bad, exact=False)
    subject = subject_of(lambda x: x if len(x) < 4 else x.view(-1, 7))
    with pytest.raises(TargetError, match="on 5 inputs of shape"):
        subject.run(X, exact=False)


def test_a_fresh_copy_has_no_memory_and_another_copy_is_run_in_its_place() -> None:
    class Counts(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls = getattr(self, "calls", 0) + 1
            return x + self.calls

    subject = Subject(Counts(), (3,))
    first = subject.run_afresh(X)["output"]
    later = subject.run(X, exact=True)["output"]
    np.testing.assert_array_equal(first, subject.run_afresh(X)["output"])
    assert not np.array_equal(first, later)
    used = subject.exact
    other = subject.copy_uncalled()
    subject.run_by(other, X)
    assert subject.exact is used
    assert other.calls == 1
    broken = Net(lambda x: x.view(-1, 7)).double()
    with pytest.raises(TargetError):
        subject.run_by(broken, X)
    assert subject.exact is used
    found = check_repeatability(subject, lambda stream, count: X[:count])
    assert (found.stochastic, found.remembers) == (False, True)


def test_drawn_numbers_are_no_memory() -> None:
    subject = subject_of(lambda x: x + torch.randn_like(x))
    found = check_repeatability(subject, lambda stream, count: X[:count])
    assert (found.stochastic, found.remembers) == (True, False)
    plain = check_repeatability(subject_of(), lambda stream, count: X[:count])
    assert (plain.stochastic, plain.remembers) == (False, False)
    seeded = subject_of(lambda x: x + torch.randn_like(x), noise_seed=3)
    assert not check_repeatability(seeded, lambda stream, count: X[:count]).stochastic


@pytest.mark.parametrize(
    ("function", "residual"),
    [
        (lambda x: 2 * x, None),
        (lambda x: x - x.mean(dim=0), 0.0),
        (lambda x: x + x[:1], 0.0),  # the first output is the same alone
        (lambda x: x + torch.arange(len(x), dtype=x.dtype).unsqueeze(1) * x[:, :1], "large"),
        (lambda x: x + x[-1:].flip(1) * torch.tensor([1.0, 0.0, 0.0], dtype=x.dtype), "large"),
    ],
)
def test_samples_that_affect_each_other_are_tested_as_a_batch(function: Any, residual: Any) -> None:
    made = residual_of_mixed_batch(subject_of(function), INPUTS, (SAME,), X[:3])
    if residual == "large":
        assert made is not None
        assert 0.1 < made < 10
    else:
        assert made == (None if residual is None else pytest.approx(residual, abs=1e-12))


@pytest.mark.parametrize(("dtype", "chosen"), [("float16", torch.float16), ("torch.float64", torch.float64),
                                               (None, torch.float32)])  # fmt: skip
def test_the_deployed_dtype_is_given_or_that_of_the_parameters(dtype: Any, chosen: Any) -> None:
    assert subjects._deployed_dtype(Net(), dtype) is chosen
    assert subjects._deployed_dtype(Net().double(), None) is torch.float64


def test_unknown_dtypes_devices_and_weights_are_refused() -> None:
    with pytest.raises(OptionError, match="expected a dtype, got 'nn'"):
        subjects._deployed_dtype(Net(), "nn")
    with pytest.raises(OptionError, match="expected an available device, got 'toaster'"):
        subjects._device("toaster")
    with pytest.raises(TargetError, match=r"not initialised yet: 0\.weight, 0\.bias"):
        Subject(nn.Sequential(nn.LazyLinear(2)), (3,))


def test_names_are_those_of_the_network_as_given() -> None:
    subject = subject_of()
    assert subject.name("structured_input.hidden.0") == "hidden.0"
    assert subject.name("_orig_mod.structured_input.hidden") == "hidden"
    assert subject.name("structured_input") == subject.name("_orig_mod") == ""
    assert subject.name("hidden") == "hidden"
    assert list(Subject(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), (3,)).modules(exact=True)) == ["0", "1"]


def test_the_users_generators_are_put_back() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with random_state_kept():
        torch.rand(7)
        np.random.random()  # noqa: NPY002
    torch.testing.assert_close(torch.rand(3), expected)


def context_of(**more: Any) -> Any:
    """A context with these parts, of a network that holds."""
    made: Any = object.__new__(NetContext)
    fields: dict[str, Any] = {
        "options": SimpleNamespace(mode="eval", seed=0, noise_seed=None), "inputs": INPUTS, "outputs": (SAME,),
        "proof": None, "batch_residual": None, "_deadline": math.inf, "_started": time.monotonic(),
        "_certificate": {}, "domain": None,
    }  # fmt: skip
    for name, value in (fields | more).items():
        try:
            setattr(made, name, value)
        except AttributeError:  # a property
            made.__dict__[name] = value
    return made


@pytest.mark.parametrize(
    ("motion", "subject", "attempted"),
    [
        (SWAP, {}, True),
        (lambda x, given: x, {}, False),
        (SWAP, {"coarse": True}, False),
        (SWAP, {"training": True}, False),
    ],
)
def test_a_proof_needs_maps_of_data_and_a_float64_copy_in_eval_mode(
    motion: Any, subject: Any, attempted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NetContext, "inputs", property(lambda self: InputClaim((3,), (motion,))))
    monkeypatch.setattr(NetContext, "_prove", lambda self: "a proof")
    made = context_of(subject=SimpleNamespace(**({"coarse": False, "training": False} | subject)))
    made.__dict__.pop("proof")
    assert made.proof == ("a proof" if attempted else None)


def test_a_proof_that_takes_half_of_the_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(self: Any) -> Any:
        raise TimeUp

    monkeypatch.setattr(NetContext, "inputs", property(lambda self: INPUTS))
    monkeypatch.setattr(NetContext, "_prove", late)
    made = context_of(subject=SimpleNamespace(coarse=False, training=False))
    made.__dict__.pop("proof")
    assert (made.proof.level, made.proof.reason.reason.code) == (None, "SYM163")


@pytest.mark.parametrize(
    ("level", "by_values", "wrong", "kind"),
    [("exact", False, False, None), ("exact", True, False, "terms"), ("failed", False, True, "terms"),
     ("rounded", False, False, "terms")],
)  # fmt: skip
def test_a_certificate_completes_a_proof_or_replaces_it(
    level: Any, by_values: bool, wrong: bool, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"claim": {"tolerance": "exact"}, "nodes": []}
    monkeypatch.setattr(contexts, "certify", lambda context, rounded: document)
    monkeypatch.setattr(contexts, "size_of", lambda document: 17)
    records = [LayerRecord("a", "Linear", "failed", 0.5, certain=wrong)] if level == "failed" else []
    made = context_of()._with_certificate(Proof(level, records, by_values=by_values))
    assert (made.level, made.certificate) == ("exact", document)
    assert (None if made.compared is None else (made.compared.terms, made.compared.kind)) == (
        None if kind is None else (17, kind))  # fmt: skip
    assert made.records == (records if wrong else [])


def test_a_proof_without_a_certificate_proves_nothing_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = state("SYM192", operation="product")

    def refuse(context: Any, rounded: bool) -> Any:
        error = NoCertificateError(reason)
        error.ties = ties
        raise error

    monkeypatch.setattr(contexts, "certify", refuse)
    ties: Any = ("x[0] = 0",)
    exact = context_of()._with_certificate(Proof("exact"))
    assert (exact.level, exact.reason.reason, exact.compared, exact.missing) == (None, reason, Compared(0, ties), None)
    open_ = context_of()._with_certificate(Proof(None, reason=Opaque(state("SYM163"))))
    assert (open_.level, open_.missing, open_.reason.reason.code) == (None, reason, "SYM163")
    ties = ()
    assert context_of()._with_certificate(Proof("failed")).compared is None


@pytest.mark.parametrize(("artefact", "coarse", "noise", "coarser"), [
    ("int8", False, 1.01 * ROUNDED, True), ("int8", False, ROUNDED, False), ("int8", True, 1.0, False),
    ("", False, 1.0, False)])  # fmt: skip
def test_a_deployed_form_is_coarser_if_it_rounds_more_than_float32(
    artefact: str, coarse: bool, noise: float, coarser: bool
) -> None:
    made = context_of(
        subject=SimpleNamespace(artefact=artefact, coarse=coarse),
        measured=SimpleNamespace(deployed=Deployed(noise=noise)),
    )
    assert made.is_coarser_deployed is coarser


def fault(verdict: str = "passed", **record: Any) -> Any:
    given: dict[str, Any] = {"residual": 0.5, "certain": True, "ulps": 3.0, "place": "weight[0, 1]", "units": (0,),
                             "inputs": (1,)} | record  # fmt: skip
    made = context_of(
        proof=Proof("failed", [LayerRecord("hidden", "Linear", "failed", **given)]),
        assessment=SimpleNamespace(verdict=verdict),
        measured=SimpleNamespace(pairs=100, searched=20),
    )
    return made.silent_fault


def test_a_wrong_weight_that_no_output_shows_is_told() -> None:
    told = fault()
    assert told.code == "SYM138"
    assert told.fields["layer"] == "hidden"
    assert (told.fields["tried"], told.fields["units"], told.fields["inputs"]) == (120, [0], [1])
    assert "why" not in told.fields
    assert fault("failed") is None
    assert fault(certain=False) is None
    assert fault(residual=None) is None
    cause = state("SYM163")
    assert fault(residual=0.0, cause=cause).fields["why"] is cause
    assert "why" not in fault(residual=0.1, cause=cause).fields
    assert context_of(assessment=SimpleNamespace(verdict="passed")).silent_fault is None


def test_inputs_are_drawn_from_the_domain_or_normally_and_by_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetContext, "inputs", property(lambda self: INPUTS))
    plain = context_of()
    first = plain.draw_inputs(1, 4)
    assert first.shape == (4, 3)
    np.testing.assert_array_equal(first, plain.draw_inputs(1, 4))
    assert not np.array_equal(first, plain.draw_inputs(2, 4))
    boxed = context_of(domain=SimpleNamespace(draw=lambda rng, count: np.full((count, 3), 7.0)))
    np.testing.assert_array_equal(boxed.draw_inputs(1, 2), np.full((2, 3), 7.0))
    np.testing.assert_array_equal(boxed._diagnosed_inputs(), np.full((16, 3), 7.0))
    assert plain._diagnosed_inputs().min() < 0
    monkeypatch.setattr(NetContext, "inputs", property(lambda self: InputClaim((2, 2), (SWAP,))))
    image = context_of()._diagnosed_inputs()
    assert image.shape == (16, 2, 2)
    assert 0 <= image.min() < image.max() <= 1


@pytest.mark.parametrize(
    ("sizes", "constant", "names"),
    [
        ({"a": (3,), "b": (1,)}, ["b"], ()),  # sizes tell them apart
        ({"a": (3,), "b": (3,)}, ["b"], ("b",)),
        ({"a": (3,), "b": (3,)}, [], ()),
        ({"a": (2, 3), "b": (6,)}, ["a"], ("a",)),
    ],
)
def test_parameters_are_told_from_outputs_of_the_same_size(sizes: Any, constant: Any, names: Any) -> None:
    def run(x: Any, *, exact: bool) -> Any:
        assert not exact
        return {path: np.zeros((3, 2)) if path in constant else np.arange(6.0).reshape(3, 2) for path in sizes}

    made = context_of(_batched_subject=SimpleNamespace(run=run), draw_inputs=lambda stream, count: X[:count])
    assert made._constant_outputs(sizes) == names


@pytest.mark.parametrize(
    ("repeatable", "mode", "alone", "asked"),
    [(True, "eval", False, True), (False, "eval", False, False), (True, "train", False, False),
     (True, "eval", True, False)],
)  # fmt: skip
def test_batches_are_compared_where_outputs_repeat_in_eval_mode(
    repeatable: bool, mode: str, alone: bool, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "residual_of_mixed_batch", lambda *told: 0.5)
    monkeypatch.setattr(NetContext, "repeatable", property(lambda self: repeatable))
    monkeypatch.setattr(NetContext, "inputs", property(lambda self: INPUTS))
    made = context_of(options=SimpleNamespace(mode=mode, seed=0), _batched_subject=SimpleNamespace(one_by_one=alone))
    made.__dict__.pop("batch_residual")
    assert made.batch_residual == (0.5 if asked else None)
