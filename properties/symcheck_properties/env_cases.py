"""Single cases (s, a, g) of an environment for your own Hypothesis tests.

`verify_env` returns a verdict about a whole run. With this module your own test checks one case at a time, together
with its other assertions::

    claim = EnvCases(lambda: gymnasium.make("CartPole-v1"), mirror)

    @given(claim.cases())
    def test_the_mirror_holds(case):
        claim.check(case)
        assert abs(case.situation.obs[0]) == abs(case.image.obs[0])

States are those that a run would test. If the set of states is a box, they are drawn from the box, so a failing state
shrinks to simple numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from symcheck.engine.clock import Clock
from symcheck.engine.environments.cases.pairs import Case
from symcheck.engine.environments.methods.axioms import judge_one_relation
from symcheck.engine.environments.methods.paired import PairedEvidence
from symcheck.engine.environments.methods.selection import Chosen, choose_method, prepare
from symcheck.engine.environments.subject.placement import Situation
from symcheck.engine.equations import BY_PART, GROUP_AXIOMS, OBSERVATION, Part
from symcheck.engine.events import ignore
from symcheck.engine.options import EnvOptions
from symcheck.errors import SymcheckError, suggestion
from symcheck_properties import space_strategies

if TYPE_CHECKING:
    from symcheck.envs.targets import AnyEnv
    from symcheck.symmetry.symmetry import Symmetry

_SAMPLES = 500  # enough to measure the effect of rounding, and to collect a pool of states
_PARTS: dict[str, Part] = {equation.name: part for part, equation in BY_PART.items()}


class EnvCases:
    """The cases of one claim about one environment, and the properties to check on each.

    The environment is built and its states are gathered when the first case is drawn.

    Args:
        make_env: builds the environment; its dynamics must be deterministic and its state settable.
        symmetry: the claim.
        seed: the seed for the collection of states.

    Example:
        >>> import gymnasium
        >>> from hypothesis import given, settings
        >>> from symcheck.envs import atlas
        >>> claim = EnvCases(lambda: gymnasium.make("CartPole-v1"), atlas.entry("cartpole/mirror").symmetry())
        >>> @given(claim.cases())
        ... @settings(max_examples=20, database=None, deadline=None)
        ... def the_mirror_holds(case):
        ...     claim.check(case)
        >>> the_mirror_holds()

    Source: the equations of van der Pol et al. (2020), section 3.1, one case at a time.
    """

    def __init__(self, make_env: Callable[[], AnyEnv], symmetry: Symmetry, *, seed: int = 0) -> None:
        self._make = make_env
        self._symmetry = symmetry
        self._options = EnvOptions(samples=_SAMPLES, seed=seed)

    @functools.cached_property
    def _chosen(self) -> Chosen:
        chosen = choose_method(prepare(self._make, self._symmetry, self._options, "environment", ignore, Clock()))
        # Whole episodes may supplement the pairs, but single cases are compared as pairs.
        if not isinstance(getattr(chosen.evidence, "of_steps", chosen.evidence), PairedEvidence):
            raise SymcheckError(
                "single cases can be compared only if states can be set and steps are reproducible. For "
                f"this environment, another method was selected: {chosen.reason}.",
                where="EnvCases",
                remedy="Use symcheck.testing.assert_env_symmetric, which compares distributions and tables too.",
            )
        return chosen

    @property
    def _evidence(self) -> PairedEvidence:
        evidence: Any = self._chosen.evidence
        return evidence  # type: ignore[no-any-return]

    @property
    def properties(self) -> tuple[str, ...]:
        """Names of the properties that can be checked on a case."""
        pairs = self._chosen.bench.pairs
        # Observations can be predicted from a state only if the access has `observe`.
        shown = pairs.placement.kind == "map" and pairs.placement.access.observe is not None
        return (GROUP_AXIOMS.name, *(name for name in _PARTS if shown or name != OBSERVATION.name))

    def cases(self) -> st.SearchStrategy[Case]:
        """Cases: a generator, a state and an action.

        Returns:
            A strategy; states shrink towards the first ones of an episode or, in a box, towards zero.

        Raises:
            SymcheckError: (when a case is drawn) the environment is compared by distributions, not by cases.
        """
        # Deferred: the environment is built when the first case is drawn, not where a test is decorated.
        return st.deferred(lambda: self._cases())

    def _cases(self) -> st.SearchStrategy[Case]:
        pairs = self._chosen.bench.pairs
        words = st.sampled_from(self._chosen.bench.words)
        actions = space_strategies.values(pairs.bound.action_space)
        return st.builds(pairs.case, words, self._situations(), actions)

    def _situations(self) -> st.SearchStrategy[Situation]:
        pool, placement = self._chosen.bench.pool.situations, self._chosen.bench.pairs.placement
        if not placement.access.box:
            return st.integers(0, len(pool) - 1).map(pool.__getitem__)
        states = np.stack([np.asarray(situation.state, dtype=np.float64) for situation in pool])
        axes = [st.floats(float(low), float(high)) for low, high in zip(states.min(0), states.max(0), strict=True)]
        # The box that the gathered states span, without states in which an episode has ended.
        boxed = st.tuples(*axes).map(np.array).filter(lambda state: not placement.access.ended(state))
        return boxed.filter(lambda state: placement.at(state, "box") is not None).map(self._at)

    def _at(self, state: Any) -> Situation:
        situation = self._chosen.bench.pairs.placement.at(state, "box")
        return self._chosen.bench.pool.situations[0] if situation is None else situation

    def check(self, case: Case, properties: Sequence[str] | None = None) -> None:
        """Assert that a case has the properties.

        Args:
            case: drawn from `cases`.
            properties: names from `properties`; None for all.

        Raises:
            AssertionError: a property fails; the message gives the property, the case, the expected and measured
                values, and the tolerance.
            SymcheckError: no such property.
        """
        for name in self.properties if properties is None else properties:
            if name not in self.properties:
                hint = suggestion(name, self.properties)
                raise SymcheckError(
                    f"{name!r} is not a property that can be checked case by case.", where="properties", remedy=hint
                )
            problem = self._break_of_axioms(case) if name == GROUP_AXIOMS.name else self._break_of(name, case)
            if problem:
                raise AssertionError(f"{name}: {problem}")

    def _break_of_axioms(self, case: Case) -> str:
        bench = self._chosen.bench
        # Along the orbit of this case, because an action map may depend on the state.
        for relation in bench.pairs.bound.group.relators:
            result = judge_one_relation(GROUP_AXIOMS.name, bench, tuple(relation), case.situation, case.action)
            if result.verdict == "failed":
                return "; ".join(cause.text for cause in result.causes)
        return ""

    def _break_of(self, name: str, case: Case) -> str:
        part = _PARTS[name]
        if not self._evidence.violates(part, case, carefully=True):
            return ""
        example, _ = self._evidence.counterexample(part, case)
        return (
            f"{BY_PART[part].claim} fails under {example.group_element} at "
            f"s = {np.asarray(example.observation).tolist()}, a = {np.asarray(example.action).tolist()}: "
            f"expected {np.asarray(example.expected).tolist()}, measured "
            f"{np.asarray(example.actual).tolist()} ({example.where} differs by {example.residual:.3g})"
        )
