"""A claimed symmetry of an MDP: one group acting on observations, actions and internal states.

The claim (van der Pol et al. 2020, eq. 4 and 5) is, for all g, s and a,

    R(s, a) = R(L_g s, K_g^s a)      and      T(s' | s, a) = T(L_g s' | L_g s, K_g^s a).

One entry per generator defines L and K. Entries that are data are checked when the symmetry is built: their images must
obey the relations of the group. Callables can only be checked on samples, by the property `group_axioms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from symcheck.groups.element import Element
from symcheck.groups.group import Group
from symcheck.mirror_functions.augmentation import read_augmentation
from symcheck.statements.statement import Statement
from symcheck.symmetry.claimed_maps import ClaimedMaps

if TYPE_CHECKING:
    import gymnasium as gym

    from symcheck.symmetry.bound import BoundSymmetry


class Symmetry(ClaimedMaps):
    """A named claim: the MDP is invariant when `group` acts on observations by L and on actions by K.

    Args:
        name: the name in reports.
        group: the group; entries follow the order of `group.generators`.
        observation: one entry per generator (see `symcheck.entries.forms`), one `Representation`, or named blocks,
            each with its own map (see `symcheck.symmetry.blocks`); for a Dict, blocks may also be given by key for its
            sub-spaces.
        action: the same for actions; callables receive `(action, obs)` with the original observation.
        state: the same for the internal state if it differs from the observation, otherwise None.
        initial: whether the start distribution is claimed to be symmetric too.
        agents: for environments with several agents, one mapping from agent to agent per generator; `observation`
            and `action` are then the entries for one agent.

    Raises:
        SpecError: an entry has no known form, or there is not one entry per generator.
        RepresentationError: entries given as data violate a relation of the group; the message names the relation.

    Example:
        >>> from symcheck.groups import catalog
        >>> mirror = Symmetry("mirror", catalog.cyclic(2), observation=[[-1, -1, -1, -1]], action=[[1, 0]])
        >>> mirror.action_representation.dim
        2

    Attributes:
        notes: checks that were skipped when the symmetry was built; reports show them.

    Source: van der Pol et al. 2020, section 3.1; state-dependent K_g^s as in their definition.
    """

    notes: tuple[Statement, ...] = ()

    @classmethod
    def from_augmentation(
        cls,
        fn: Callable[..., Any],
        *,
        env: Any,
        group: Group,
        convention: Literal["rsl_rl"] = "rsl_rl",
        elements: Sequence[Element] | None = None,
        last_action: Any = None,
        state: Any = None,
        observation_group: str | None = None,
        name: str | None = None,
    ) -> Symmetry:
        """Read the symmetry from a batched mirror function, after checking its blocks against the group.

        `fn(env, obs, actions)` returns `(obs, actions)`, each |G| times as long: the batch itself, then its images
        under the other elements, block after block. B_i(B_j(x)) = B_k(x) must hold for g_k = g_i g_j.

        Args:
            fn: the function; batches are tensors (n, *shape) on `env.device`, dictionaries of tensors, or NumPy
                arrays if it does not accept tensors. None stands for a half that is not requested, as argument and
                as result.
            env: an environment, a Gymnasium id or a zero-argument factory; its spaces give the sizes, and it is passed
                to `fn`.
            group: the group.
            convention: "rsl_rl", described above.
            elements: the elements in the order of the blocks; `group.elements()` when left out.
            last_action: columns (start, stop) of the observation that contain the last action, or a dictionary from
                observation group to columns. With None they are searched for by stepping a copy of `env`; if that is
                impossible, a `SkippedCheckWarning` (also in `notes`) says so. False skips the check.
            state: how the symmetry acts on the internal state, as for `Symmetry`.
            observation_group: the entry of a dictionary observation on which the symmetry acts; all of them by
                default.
            name: the symmetry's name in reports; the function's name by default.

        Returns:
            The symmetry, as data if the function is linear or affine on its samples, otherwise with callables.

        Raises:
            SpecError: the function raises, changes its input, is not deterministic, returns an unexpected type, or
                handles None incorrectly.
            RepresentationError: the identity is not first, blocks are misplaced, not closed or not those of the
                group, or the last action transforms differently from the action; the message names the columns.

        Example:
            >>> import torch
            >>> from symcheck.groups import catalog
            >>> def mirror(env, obs, actions):
            ...     both = None if obs is None else torch.cat([obs, -obs])
            ...     return both, None if actions is None else torch.cat([actions, 1 - actions])
            >>> made = Symmetry.from_augmentation(mirror, env="CartPole-v1", group=catalog.cyclic(2))
            >>> made.observation[0].sign.tolist(), made.action[0].index.tolist()
            ([-1, -1, -1, -1], [1, 0])

        Cost: |G|^2 blocks of eight rows; reading the maps takes one row, or as many as there are columns.
        """
        mirror = read_augmentation(
            fn,
            env=env,
            group=group,
            convention=convention,
            elements=elements,
            last_action_slot=last_action,
            observation_group=observation_group,
            name=name,
        )
        made = cls(mirror.name, group, mirror.observation, mirror.action, state=state)
        made.notes = mirror.notes
        return made

    def at_elements(self, seed: int) -> Symmetry:
        """The claim at the finitely many elements that network runs test; for a finite group, the claim itself.

        Args:
            seed: selects the elements of a continuous group.

        Returns:
            A claim whose generators are those elements.
        """
        if not self.is_continuous:
            return self
        from symcheck.symmetry.tested import concrete_claim  # loads gymnasium

        return cast("Symmetry", concrete_claim(self, seed))

    def bind(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> BoundSymmetry:
        """Fit the symmetry to an environment's spaces.

        Args:
            observation_space: the space of observations; its sizes and dtypes are compared with the entries.
            action_space: the space of actions.

        Returns:
            The symmetry as maps on single values and on batches.

        Raises:
            SpecError: an entry does not fit its space; the message gives both sizes.
        """
        from symcheck.symmetry.bound import BoundSymmetry  # loads gymnasium

        if self.is_continuous:
            from symcheck.symmetry.tested import BoundTested

            return BoundTested(self, observation_space, action_space)
        return BoundSymmetry(self, observation_space, action_space)
