"""The data that the properties of a network share: copies, claims, proof and samples, each created on first use."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from symcheck.array_types import Floats
from symcheck.certificate_checker import PRODUCT_CLAIM
from symcheck.engine.clock import TimeUp, not_after, seconds_from
from symcheck.engine.events import Emit, Progress
from symcheck.engine.networks.blame.diagnosis import INPUTS, causes_from_weights, diagnose, paired_dropout
from symcheck.engine.networks.blame.proof import Compared, Proof, follow_action, same_numbers
from symcheck.engine.networks.capture.capture import Capture
from symcheck.engine.networks.capture.gate import answers_in_other_modes, capture_every_call, floating_outputs
from symcheck.engine.networks.capture.held_state import lasting_change
from symcheck.engine.networks.capture.one_run import capture_one_run
from symcheck.engine.networks.gathering import gather_evidence
from symcheck.engine.networks.graph.making import certify, size_of
from symcheck.engine.networks.graph.nodes import NoCertificateError
from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.samples.counterexamples import ClaimedNetwork, shrink_worst
from symcheck.engine.networks.samples.location import first_nonfinite_module
from symcheck.engine.networks.samples.measuring import Measured
from symcheck.engine.networks.samples.repeatability import Repeatability, check_repeatability, residual_of_mixed_batch
from symcheck.engine.networks.samples.ruler import ENOUGH, ROUNDED, Ruler
from symcheck.engine.networks.samples.sampling import stacked_observations, typical_inputs
from symcheck.engine.networks.subject.adapters import adapt_agent
from symcheck.engine.networks.subject.claims import InputClaim, OutputClaim, input_claim, output_claims
from symcheck.engine.networks.subject.domain import Domain, domain_of, policy_space
from symcheck.engine.networks.subject.integers import of_whole_numbers
from symcheck.engine.networks.subject.logits import logits_claim
from symcheck.engine.networks.subject.shapes import input_shape, mismatch
from symcheck.engine.networks.subject.structured import of_leaves
from symcheck.engine.networks.subject.subject import Subject
from symcheck.engine.networks.subject.torchscript import followable
from symcheck.engine.networks.subject.trainers import of_one_vector
from symcheck.engine.networks.subject.values import Opaque, SignedPermutation
from symcheck.engine.networks.verdicts import (
    Assessment,
    assess,
    assess_by_gradients,
    assess_changing_calls,
    assess_mixed_batches,
    is_wrong_weight,
)
from symcheck.engine.results import Counterexample
from symcheck.errors import TargetError
from symcheck.statements.statement import Statement, state
from symcheck.symmetry.symmetry import Symmetry

RUNS = 12
"""Number of inputs at which entries of a network are compared: enough that two different functions do not agree by
chance."""
BOX = 1.0
"""Bounds on residuals are stated for inputs with entries in [-1, 1]."""


class NetContext:
    """One network under one symmetry.

    Nothing runs on construction. Every part is a property that is computed once, from the parts that it needs.

    Args:
        net: the network; never modified.
        symmetry: the claim.
        options: how much to test, and how the network is deployed.
        emit: receives progress.
        certificate: permutations to check instead of searching, by the position of the layer in the chain.
    """

    def __init__(
        self,
        net: nn.Module,
        symmetry: Symmetry,
        options: NetOptions,
        emit: Emit,
        certificate: Mapping[int, Sequence[SignedPermutation]] | None = None,
    ) -> None:
        self.symmetry = symmetry.at_elements(options.seed)
        self.options = options
        self._given = net
        self._emit = emit
        self._certificate = certificate or {}
        self._started = time.monotonic()
        # the time budget is measured from the start of the run
        seconds = seconds_from(self._started, options.max_time)
        self._deadline = math.inf if seconds is None else self._started + seconds

    def check_fit(self) -> None:
        """Run the network a few times: it must run, the symmetry must fit it, and its outputs must repeat.

        Raises:
            SymcheckError: the network cannot be copied or run, or the symmetry does not fit it.
        """
        # Accessing each of them runs the network; a mismatch raises here.
        _ = self.outputs, self.observations, self.batch_residual

    @cached_property
    def _adapted(self) -> nn.Module:
        return adapt_agent(self._given)

    @cached_property
    def _claimed_input(self) -> tuple[nn.Module, InputClaim]:
        """The network as a function of one tensor, and the action on that tensor."""
        net, given = self._adapted, self.options.input_shape
        structured = of_leaves(net, self.symmetry, given, self._space)
        if structured is not None:
            return structured
        net = of_one_vector(net)
        claim = input_claim(self.symmetry, input_shape(net, self.symmetry, given))
        return of_whole_numbers(net, self._space), claim

    @property
    def inputs(self) -> InputClaim:
        """The action on inputs."""
        return self._claimed_input[1]

    @cached_property
    def _batched_subject(self) -> Subject:
        """The network on batches, before it is known whether samples of a batch affect each other."""
        net, inputs = self._claimed_input
        options = self.options
        return Subject(
            net,
            inputs.shape,
            mode=options.mode,
            dtype=options.dtype,
            device=options.device,
            noise_seed=options.noise_seed,
        )

    @cached_property
    def subject(self) -> Subject:
        """The network to run; one input at a time if a batch would compute another function."""
        return self._batched_subject if self.batch_residual is None else self._batched_subject.taking_one_by_one()

    @cached_property
    def outputs(self) -> tuple[OutputClaim, ...]:
        """The claimed action on outputs."""
        roles = self.options.outputs
        if roles is None:
            roles = getattr(self._adapted, "roles", None)
        subject = self._batched_subject  # outside the try block: its errors do not concern sizes
        try:
            shapes = subject.shapes()
        except TargetError as error:
            raise mismatch(self._claimed_input[0], self.inputs.shape) or error from error
        constant = () if roles is not None else self._constant_outputs(shapes)
        actions = policy_space(self._given, "action_space", self.options.action_space)
        logits = logits_claim(self.symmetry, actions, self._space, shapes, self.inputs.shape)
        return output_claims(self.symmetry, shapes, roles, constant, logits)

    def _constant_outputs(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
        """The outputs that are parameters rather than functions of the input, if another output has the same size."""
        sizes = [math.prod(shape) for shape in shapes.values()]
        if max(sizes.count(size) for size in sizes) == 1:
            return ()
        rows = self._batched_subject.run(self.draw_inputs(2, 3), exact=False)
        return tuple(path for path, values in rows.items() if len(values) > 1 and (values == values[0]).all())

    @cached_property
    def observations(self) -> Floats | None:
        """Inputs to test in addition to the generated ones, stacked; None if none were given."""
        return stacked_observations(self.options.observations, self.inputs.shape)

    @cached_property
    def domain(self) -> Domain | None:
        """The domain of inputs, from the environment's observation space or the policy's own; None if unknown."""
        return None if self._space is None else domain_of(self._space, self.inputs.shape)

    @property
    def _space(self) -> Any:
        """The observation space of the environment, or the policy's own; None if neither is known."""
        return policy_space(self._given, "observation_space", self.options.space)

    def draw_inputs(self, stream: int, count: int) -> Floats:
        """Ordinary inputs, shape (count, *shape), from one of the run's independent streams."""
        rng = np.random.default_rng((self.options.seed, stream))
        return rng.normal(size=(count, *self.inputs.shape)) if self.domain is None else self.domain.draw(rng, count)

    @cached_property
    def ruler(self) -> Ruler:
        """The scales of the outputs on ordinary inputs, or on observations if there are enough."""
        seen = self.observations
        rng = np.random.default_rng((self.options.seed, 7))
        typical = typical_inputs(self.inputs.shape, ENOUGH, rng, self.domain)
        if seen is not None and len(seen) >= ENOUGH:
            typical = seen[:: len(seen) // ENOUGH][:ENOUGH]
        rounded = self.proof is not None and self.proof.level == "rounded"
        return Ruler(self.subject, typical, self.options.seed, weights_rounded=rounded)

    @cached_property
    def _repeatability(self) -> Repeatability:
        _ = self.outputs  # reject a network that does not fit before running it twice
        return check_repeatability(self._batched_subject, self.draw_inputs)

    @property
    def stochastic(self) -> bool:
        """Whether two forward passes differ because the network draws random numbers."""
        return self._repeatability.stochastic

    @property
    def remembers(self) -> bool:
        """Whether the output depends on earlier calls."""
        return self._repeatability.remembers

    @property
    def repeatable(self) -> bool:
        """Whether the same input gives the same output, so that two outputs can be compared."""
        return not self.stochastic and not self.remembers

    @cached_property
    def batch_residual(self) -> float | None:
        """The residual of a batch if its samples affect each other; None if they do not."""
        if not self.repeatable or self.options.mode != "eval" or self._batched_subject.one_by_one:
            return None
        return residual_of_mixed_batch(self._batched_subject, self.inputs, self.outputs, self.draw_inputs(5, 3))

    @property
    def elements(self) -> tuple[str, ...]:
        """A readable name of each generator: the symmetry's own if there is only one."""
        group = self.symmetry.group
        # If there is one generator, use the symmetry's name for it.
        alone = len(group.generators) == 1 and math.isfinite(group.order)
        return (self.symmetry.name,) if alone else tuple(group.generator_names)

    @property
    def claimed(self) -> ClaimedNetwork:
        """The network with its claims."""
        return ClaimedNetwork(self.subject, self.inputs, self.outputs, self.elements, self.domain, self._deadline)

    @cached_property
    def proof(self) -> Proof | None:
        """The result from the weights; None if the action is a callable, in train mode, or without a float64 copy."""
        # In train mode, statistics of the batch would be followed as constants.
        if not self.inputs.is_data or self.subject.coarse or self.subject.training:
            return None
        try:
            with not_after((self._started + self._deadline) / 2):
                return self._prove()
        except TimeUp:  # the rest of the time is for samples
            return Proof(None, reason=Opaque(state("SYM163")), box=BOX)

    def _prove(self) -> Proof:
        """The result from the weights.

        Raises:
            TimeUp: it took half of the time budget.
        """
        # (seed, 1) to (seed, 10) are independent streams of a run's steps.
        example = self.draw_inputs(1, RUNS)
        captured = self.capture
        if isinstance(captured, Opaque):
            return self._fault_in_one_run(captured, example)
        proof = self._follow(captured, example)
        # given permutations are checked, and no others are tried
        followed_through = proof.level in ("exact", "rounded")
        if not followed_through and (self._certificate or not self._holds_on(example[:1])):
            return proof
        return proof if proof.level == "rounded" else self._with_certificate(proof)

    def _follow(self, captured: Capture, example: Floats) -> Proof:
        names, given = self.subject.name, self._certificate
        return follow_action(captured, self.inputs, self.outputs, example, box=BOX, names=names, given=given)

    def _fault_in_one_run(self, end: Opaque, example: Floats) -> Proof:
        """The result without a graph of every call: a layer that fails in one run fails; nothing is proved."""
        net = followable(self.subject.exact, self.subject.shape)
        captured = None if lasting_change(end.reason) else capture_one_run(net, example[:1])
        proof = Proof(None, box=BOX) if captured is None else self._follow(captured, example)
        return proof if proof.level == "failed" else replace(proof, level=None, reason=end)

    @cached_property
    def capture(self) -> Capture | Opaque:
        """The graph of every call; otherwise the reason why there is none."""
        subject = self.subject
        net = followable(subject.copy_uncalled(), subject.shape)
        seed, alone = self.options.seed, subject.one_by_one
        captured = capture_every_call(net, subject.runs_torch, subject.shape, seed, alone=alone, given=subject.given)
        if isinstance(captured, Opaque) or not subject.backend:
            return captured
        return replace(captured, backend=subject.backend)

    def _holds_on(self, example: Floats) -> bool:
        """Whether the claim holds on an input."""
        usual = self.subject.run(example, exact=True)
        for generator in range(len(self.inputs.motions)):
            image = self.subject.run(self.inputs.apply(generator, example), exact=True)
            for claim in self.outputs:
                expected = claim.apply(generator, usual[claim.path], example)
                if not same_numbers(expected.reshape(-1), image[claim.path].reshape(-1)):
                    return False
        return True

    def _with_certificate(self, proof: Proof) -> Proof:
        """The proof with a certificate that the checker accepted; without one, at a level that proves nothing."""
        try:
            document = certify(self, rounded=False)
        except NoCertificateError as error:
            compared = Compared(0, error.ties) if error.ties else None
            if proof.level == "exact":
                end = proof.reason or Opaque(error.reason)
                return replace(proof, level=None, reason=end, compared=compared, missing=None)
            return replace(proof, compared=compared, missing=error.reason)
        if proof.level == "exact" and not proof.by_values:
            return replace(proof, certificate=document)
        # keep the records if a wrong weight affects no output, so that the report can mention it
        silent = proof.first_failure is not None and is_wrong_weight(proof.first_failure)
        kind = "matrices" if document["claim"]["tolerance"] == PRODUCT_CLAIM else "terms"
        compared = Compared(size_of(document), kind=kind)
        return Proof("exact", proof.records if silent else [], box=BOX, compared=compared, certificate=document)

    @cached_property
    def measured(self) -> Measured:
        """The result from samples."""
        return gather_evidence(
            self.subject,
            self.inputs,
            self.outputs,
            self.proof,
            self.options,
            self.observations,
            self.ruler,
            domain=self.domain,
            deadline=self._deadline,
            progress=lambda done, total: self._emit(Progress(done, total)),
        )

    @cached_property
    def assessment(self) -> Assessment:
        """The combined result of proof and samples for the network as a whole."""
        assessment = assess(
            self.proof,
            self.measured,
            strict=self.options.strict,
            excused=[claim.path for claim in self.outputs if claim.role == "action_scale"],
            coarse=self.subject.coarse,
            artefact=self.subject.artefact,
            not_judged=self.subject.not_judged,
        )
        nan = self.measured.nan
        if nan is not None:
            # The first module with a non-finite output; otherwise the output.
            location = first_nonfinite_module(self.subject, nan) or self.measured.nan_path
            assessment = replace(assessment, location=location)
        end = None if self.proof is None else self.proof.reason
        if end is not None and (changed := lasting_change(end.reason)):
            assessment = assess_changing_calls(assessment, changed)
        if assessment.holds and not assessment.facts.exhaustive and self._answers_by_gradients:
            assessment = assess_by_gradients(assessment)
        return assessment if self.batch_residual is None else assess_mixed_batches(assessment, self.batch_residual)

    @property
    def _answers_by_gradients(self) -> bool:
        """Whether the network computes a different function while gradients are recorded, as in a plain call."""
        subject = self.subject
        # a noise seed applies per call, and these are calls of another copy
        if subject.coarse or subject.training or not self.repeatable or self.options.noise_seed is not None:
            return False
        x = torch.from_numpy(self.draw_inputs(10, 1 if subject.one_by_one else 3))
        try:
            return not answers_in_other_modes(subject.exact, x, floating_outputs(subject.exact, x))
        except Exception:  # it does not run in other modes, so there is nothing to compare
            return False

    @property
    def is_coarser_deployed(self) -> bool:
        """Whether the deployed form rounds more than float32, because it does not run in torch."""
        return bool(self.subject.artefact) and not self.subject.coarse and self.measured.deployed.noise > ROUNDED

    @cached_property
    def counterexample(self) -> Counterexample | None:
        """The shrunk failing input; None if nothing failed."""
        if self.assessment.verdict != "failed":
            return None
        # the last passes describe what was found, also after the deadline
        with not_after(math.inf):
            return shrink_worst(self.claimed, self.measured, self.assessment.tolerance, self.ruler.reference)

    @cached_property
    def causes(self) -> tuple[Statement, ...]:
        """Likely causes of a failure; for a fault in the weights without effect on outputs, the fault."""
        worst = self.measured.worst
        if self.silent_fault is not None:
            return (self.silent_fault,)
        if self.assessment.verdict != "failed" or worst is None:
            return ()
        if self.measured.nan is not None:
            return (state("SYM152", output=self.measured.nan_path),)
        dropout: tuple[Statement, ...] = ()
        if self.subject.training and self.options.noise_seed is not None:
            # With a fixed noise seed, dropout drops the same places of x and of Lx.
            dropout = paired_dropout(self.subject)
        alternatives: tuple[Statement, ...] = ()
        with suppress(TimeUp), not_after(self._deadline):
            alternatives = diagnose(
                self.subject,
                self.inputs,
                self.outputs,
                self.proof,
                worst.path,
                worst.generator,
                self._diagnosed_inputs(),
                one_sided=bool(np.isinf(worst.residual)),
            )
        return (*dropout, *alternatives, *causes_from_weights(self.proof))

    def _diagnosed_inputs(self) -> Floats:
        """Inputs that distinguish causes; for images, uniform numbers like pixels."""
        rng, shape = np.random.default_rng((self.options.seed, 3)), (INPUTS, *self.inputs.shape)
        if self.domain is not None:
            return self.domain.draw(rng, INPUTS)
        return rng.normal(size=shape) if len(shape) == 2 else rng.random(shape)

    @cached_property
    def silent_fault(self) -> Statement | None:
        """The fault in a layer's weights that no output shows; None if there is none."""
        failure = None if self.proof is None else self.proof.first_failure
        # Only matched weights can be called wrong; a failure that outputs show is explained by its own causes.
        if failure is None or not is_wrong_weight(failure) or self.assessment.verdict == "failed":
            return None
        fields: dict[str, Any] = {"layer": failure.name} if failure.name else {}
        fields |= {"place": failure.place, "ulps": failure.ulps, "units": list(failure.units)}
        fields |= {"inputs": list(failure.inputs), "tried": self.measured.pairs + self.measured.searched}
        # The weights are right: the operations after the layer could not be followed.
        if not failure.residual and failure.cause is not None:
            fields["why"] = failure.cause
        return state("SYM138", **fields)

    @property
    def adapter_note(self) -> Statement | None:
        """The adapter's note on how the policy is called; None for networks without an adapter."""
        return getattr(self._adapted, "note", None)

    @property
    def region(self) -> Statement:
        """The tested inputs."""
        return state("region_inputs", shape=list(self.subject.shape), families=list(self.measured.families))
