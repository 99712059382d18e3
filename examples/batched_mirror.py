"""Checks the mirror function of a batched robot simulator: all blocks at once, as robot-learning libraries write it.

python examples/batched_mirror.py

The signature is that of these libraries: observations and actions stacked along the batch, identity first, `None` for a
missing half. `forgets_last_action` does not mirror the last action inside the observation, a common mistake.
"""

from __future__ import annotations

import torch
from torch import Tensor

import symcheck as sc

# four legs, one hip and one knee each: front left, front right, rear left, rear right
SWAP = [2, 3, 0, 1, 6, 7, 4, 5]  # exchange left and right legs
SIGN = torch.tensor([-1.0, 1.0] * 4)  # hips rotate sideways, knees do not


class Quadrupeds:
    """A stub of a batched simulator, with only the inputs of a mirror function."""

    num_actions = 8

    def get_observations(self) -> Tensor:
        """Base velocity (3), joint positions (8) and last action (8) of 16 robots."""
        return torch.zeros(16, 3 + 8 + 8)


def mirrored_joints(joints: Tensor) -> Tensor:
    """Joints (batch, 8) of the mirrored robot."""
    return joints[:, SWAP] * SIGN


def mirrored_observation(obs: Tensor, *, last_action: bool = True) -> Tensor:
    """Base velocity (forward, sideways, turning), joint positions, last action."""
    velocity = obs[:, :3] * torch.tensor([1.0, -1.0, -1.0])
    actions = obs[:, 11:]
    return torch.cat([velocity, mirrored_joints(obs[:, 3:11]), mirrored_joints(actions) if last_action else actions], 1)


def augment(env: object, obs: Tensor | None, actions: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Both blocks of a batch: the batch itself, then its mirror image."""
    return (
        None if obs is None else torch.cat([obs, mirrored_observation(obs)]),
        None if actions is None else torch.cat([actions, mirrored_joints(actions)]),
    )


def forgets_last_action(env: object, obs: Tensor | None, actions: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The same with a bug: the last action inside the observation is not mirrored."""
    return (
        None if obs is None else torch.cat([obs, mirrored_observation(obs, last_action=False)]),
        None if actions is None else torch.cat([actions, mirrored_joints(actions)]),
    )


def main() -> None:
    """Check both functions; the second is rejected, and the message names the wrong columns."""
    group = sc.groups.cyclic(2)
    mirror = sc.Symmetry.from_augmentation(augment, env=Quadrupeds(), group=group, last_action=(11, 19))
    print(f"augment: a symmetry of {mirror.group.name}, usable by layers and by verify-net")
    try:
        sc.Symmetry.from_augmentation(forgets_last_action, env=Quadrupeds(), group=group, last_action=(11, 19))
    except sc.errors.SymcheckError as error:
        print(f"forgets_last_action: {error}")


if __name__ == "__main__":
    main()
