"""Batched mirror functions: correct ones become symmetries, each planted fault is named down to its columns."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from symcheck.entries.forms import FunctionEntry, SpatialEntry, TreeEntry
from symcheck.errors import RepresentationError, SkippedCheckWarning, SpecError
from symcheck.groups import catalog
from symcheck.mirror_functions.block_checks import Samples, check_agreement
from symcheck.symmetry.symmetry import Symmetry

# Most environments here are shapes only, which cannot be stepped.
pytestmark = pytest.mark.filterwarnings("ignore::symcheck.errors.SkippedCheckWarning")

C2, C4, D4, V4 = catalog.cyclic(2), catalog.cyclic(4), catalog.dihedral(4), catalog.klein_four()
LEGS = 12
SCAN = 187


class Walker(gym.Env):
    """Shapes of a four-legged robot: three velocities, twelve joints, the last action, a height scan of 17 x 11."""

    observation_space = spaces.Box(-np.inf, np.inf, (3 + LEGS + LEGS + SCAN,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (LEGS,), np.float32)

    def __init__(self):
        self.last = np.zeros(LEGS, np.float32)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.last = np.zeros(LEGS, np.float32)
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        self.last = np.asarray(action, np.float32)
        return self._seen(), 0.0, False, False, {}

    def _seen(self):
        noise = self.np_random.normal(size=self.observation_space.shape).astype(np.float32)
        noise[15:27] = self.last
        return noise


def legs_left_right(q):  # LF, LH, RF, RH by hip, thigh, knee: sides change, hips change sign
    q = q.reshape(-1, 4, 3)[:, [2, 3, 0, 1]].clone()
    q[..., 0] *= -1
    return q.reshape(-1, LEGS)


def legs_front_back(q):
    q = q.reshape(-1, 4, 3)[:, [1, 0, 3, 2]].clone()
    q[..., 1:] *= -1
    return q.reshape(-1, LEGS)


def scan_left_right(h):
    return h.reshape(-1, 11, 17).flip(1).reshape(-1, SCAN)


def scan_front_back(h):
    return h.reshape(-1, 11, 17).flip(2).reshape(-1, SCAN)


def left_right(obs):
    v, q, last, h = obs.split([3, LEGS, LEGS, SCAN], dim=1)
    v = v * torch.tensor([1.0, -1.0, 1.0])
    return torch.cat([v, legs_left_right(q), legs_left_right(last), scan_left_right(h)], dim=1)


def front_back(obs):
    v, q, last, h = obs.split([3, LEGS, LEGS, SCAN], dim=1)
    v = v * torch.tensor([-1.0, 1.0, 1.0])
    return torch.cat([v, legs_front_back(q), legs_front_back(last), scan_front_back(h)], dim=1)


def blocks(*maps):
    return lambda x: None if x is None else torch.cat([m(x) for m in maps])


def same(x):
    return x


OBSERVED = blocks(same, left_right, front_back, lambda x: left_right(front_back(x)))
ACTED = blocks(same, legs_left_right, legs_front_back, lambda x: legs_left_right(legs_front_back(x)))


def quadruped(env, obs, actions):
    return OBSERVED(obs), ACTED(actions)


def made(fn, env=None, group=V4, **options):
    return Symmetry.from_augmentation(fn, env=Walker() if env is None else env, group=group, **options)


def test_a_correct_function_becomes_data_with_the_generators_maps():
    symmetry = made(quadruped)
    assert symmetry.name == "quadruped"
    assert symmetry.observation_representation.dim == 3 + 2 * LEGS + SCAN
    x = torch.randn(5, 214, generator=torch.Generator().manual_seed(0))
    for entry, block in zip(symmetry.observation, (left_right, front_back), strict=True):
        np.testing.assert_array_equal(entry.apply(x.numpy()), block(x).numpy())
    assert symmetry.action_representation.matrix(V4.generators[0])[6, 0] == -1


def test_the_environment_given_is_never_stepped():
    env = Walker()
    made(quadruped, env)
    assert env.steps == 0


def test_a_function_is_called_by_name_where_its_parameters_stand_in_another_order():
    def other_order(obs, actions, env):
        assert isinstance(env, Walker)
        return quadruped(env, obs, actions)

    assert made(other_order).name == "other_order"


def swapped(env, obs, actions):
    """D4 on the plane with the blocks of r and s exchanged."""
    r, s = torch.tensor([[0.0, -1.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
    matrices = [torch.eye(2), s, r, r @ r, r @ s, s @ r, r @ r @ r, r @ r @ s]
    stack = lambda x: None if x is None else torch.cat([x @ m.T for m in matrices])  # noqa: E731
    return stack(obs), stack(actions)


class Plane(gym.Env):
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)


def right_order(env, obs, actions):
    names = [D4.element_name(g) for g in D4.elements()]
    r, s = torch.tensor([[0.0, -1.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
    product = {"e": torch.eye(2)}
    for name, g in zip(names, D4.elements(), strict=True):
        matrix = torch.eye(2)
        for letter in D4.word(g):
            matrix = matrix @ (r, s)[letter]
        product[name] = matrix
    stack = lambda x: None if x is None else torch.cat([x @ product[n].T for n in names])  # noqa: E731
    return stack(obs), stack(actions)


def test_misplaced_blocks_are_named_with_the_element_that_each_is():
    made(right_order, Plane(), D4)
    with pytest.raises(RepresentationError, match=r"another order: block 1 is s where r was expected; block 2 is r "):
        made(swapped, Plane(), D4)


def test_a_listed_order_is_accepted():
    r, s = D4.generators
    listed = [D4.identity, s, r, r * r, r * s, s * r, r * r * r, r * r * s]
    symmetry = made(swapped, Plane(), D4, elements=listed)
    np.testing.assert_array_equal(symmetry.observation[0].dense(), [[0, -1], [1, 0]])
    with pytest.raises(SpecError, match="identity first"):
        made(swapped, Plane(), D4, elements=listed[::-1])
    with pytest.raises(SpecError, match="each of the 8 elements"):
        made(swapped, Plane(), D4, elements=listed[:7])


def test_a_forgotten_height_scan_is_named_by_block_and_columns():
    def forgets(x):
        moved = left_right(front_back(x))
        moved[:, 45:] = x[:, 45:]
        return moved

    def planted(env, obs, actions):
        return blocks(same, left_right, front_back, forgets)(obs), ACTED(actions)

    with pytest.raises(RepresentationError) as caught:
        made(planted)
    message = str(caught.value)
    assert "block 3 differs from block 1 composed with block 2 in observation columns 45 to" in message
    assert "all of them with block 3" in message
    assert "not closed" in message


@pytest.mark.parametrize("block", [1, 2, 3])
def test_the_block_that_all_failing_compositions_share_is_named(block):
    maps = [same, left_right, front_back, lambda x: left_right(front_back(x))]
    right = maps[block]

    def forgets(x):
        moved = right(x)
        moved[:, 45:] = x[:, 45:]
        return moved

    maps[block] = forgets
    with pytest.raises(RepresentationError, match=f"compositions disagree, all of them with block {block}"):
        made(lambda env, obs, actions: (blocks(*maps)(obs), ACTED(actions)))


def test_one_wrong_sign_is_named():
    def planted(env, obs, actions):
        def wrong(x):
            moved = legs_left_right(x)
            moved[:, 4] *= -1
            return moved

        return OBSERVED(obs), blocks(same, wrong, legs_front_back, lambda x: legs_left_right(legs_front_back(x)))(
            actions
        )

    with pytest.raises(RepresentationError, match=r"action column"):
        made(planted)


def test_a_turn_by_the_wrong_angle_does_not_close():
    def planted(env, obs, actions):
        angle = torch.tensor(1.4)
        turn = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]])
        maps = [lambda x, k=k: x @ torch.linalg.matrix_power(turn, k).T for k in range(4)]
        return blocks(*maps)(obs), blocks(*maps)(actions)

    with pytest.raises(RepresentationError, match=r"not closed"):
        made(planted, Plane(), C4)


def test_the_identity_in_another_block_is_named():
    def planted(env, obs, actions):
        return blocks(left_right, same)(obs), blocks(legs_left_right, same)(actions)

    with pytest.raises(
        RepresentationError, match=r"identity must come first: block 1 is the identity, but block 0 chang"
    ):
        made(planted, group=C2)


def test_no_identity_at_all_is_named():
    def planted(env, obs, actions):
        return blocks(left_right, left_right)(obs), blocks(legs_left_right, legs_left_right)(actions)

    with pytest.raises(RepresentationError, match="no other block is the identity"):
        made(planted, group=C2)


def test_images_that_follow_each_other_sample_by_sample_are_named():
    def weave(x, m):
        return None if x is None else torch.stack([x, m(x)], dim=1).reshape(-1, x.shape[1])

    def planted(env, obs, actions):
        return weave(obs, left_right), weave(actions, legs_left_right)

    with pytest.raises(RepresentationError, match="the images of each sample are next to each other"):
        made(planted, group=C2)


def test_a_last_action_that_stays_behind_is_found_in_the_observation_and_named():
    def planted(env, obs, actions):
        def forgets(x):
            moved = left_right(x)
            moved[:, 15:27] = x[:, 15:27]
            return moved

        return blocks(same, forgets)(obs), blocks(same, legs_left_right)(actions)

    message = r"the last action, observation columns 15 to 26, does not transform like the action: in block 1 \(r\)"
    with pytest.raises(RepresentationError, match=message):
        made(planted, group=C2)
    with pytest.raises(RepresentationError, match=message):
        made(planted, group=C2, last_action=(15, 27))
    assert made(planted, group=C2, last_action=False).group.order == 2


@pytest.mark.parametrize("slot", [(15, 20), (210, 222), "15", {"policy": (0, 12)}, (1.0, 13.0)])
def test_a_slot_that_does_not_fit_is_refused(slot):
    with pytest.raises(SpecError, match="last_action"):
        made(quadruped, last_action=slot)


@pytest.mark.parametrize(("changed", "told"), [(slice(0, 2), "columns 0 to 1"), (slice(1, 2), "column 1")])
def test_a_function_that_changes_its_input_is_named(changed, told):
    def planted(env, obs, actions):
        if obs is not None:
            image = -obs
            obs[:, changed] *= -1
            obs = torch.cat([obs, image])
        return obs, None if actions is None else torch.cat([actions, -actions])

    with pytest.raises(SpecError, match=f"changes its input in place: observation {told} differ"):
        made(planted, Plane(), C2)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda env, obs, actions: torch.cat([obs, -obs]), "to return"),
        (lambda env, obs, actions: (torch.cat([obs, -obs]), actions), "got 1 blocks"),
        (lambda env, obs, actions: (torch.cat([obs, -obs])[:-1], torch.cat([actions, -actions])), "got 15 rows"),
        (lambda env, obs, actions: (torch.cat([obs, obs]), torch.cat([actions, actions])), "describes no symmetry"),
        (lambda env, obs, actions: (torch.cat([obs, obs / 0]), torch.cat([actions, -actions])), "NaN or infinity"),
        (lambda env, obs, actions: (torch.cat([obs, -obs]), torch.cat([actions, -actions])), "when actions is None"),
        (lambda env, obs, actions: (torch.cat([obs, -obs])[:, :1], None), "of shape"),
        (lambda env, obs, actions: 1 / 0, "ZeroDivisionError"),
        (lambda env, obs, actions: ({"policy": obs.repeat(2, 1)}, actions), "got a dictionary"),
        (lambda env, obs, actions: (torch.cat([obs, obs + torch.rand(1)]), actions.repeat(2, 1)), "second call"),
    ],
)
def test_answers_of_another_form_are_refused(fn, message):
    with (
        pytest.raises(SpecError, match=message) if "no symmetry" not in message else pytest.raises(RepresentationError)
    ):
        made(fn, Plane(), C2)


def test_a_half_must_move_alike_whether_the_other_is_given_or_not():
    def planted(env, obs, actions):
        sign = -1 if obs is not None else 1
        return blocks(same, torch.neg)(obs), blocks(same, lambda a: sign * a)(actions)

    with pytest.raises(SpecError, match=r"1 of the actions depends on whether obs is None: action columns 0 to 1"):
        made(planted, Plane(), C2)

    def returns_anyway(env, obs, actions):
        observed = torch.zeros(4, 2) if obs is None else torch.cat([obs, -obs])
        return observed, blocks(same, torch.neg)(actions)

    with pytest.raises(SpecError, match="observations were not given, so the function must return None"):
        made(returns_anyway, Plane(), C2)


class Grouped(gym.Env):
    observation_space = spaces.Dict(
        {
            "critic": spaces.Box(-np.inf, np.inf, (3,), np.float32),
            "policy": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        }
    )
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)


def test_observation_groups_become_one_entry_each():
    def grouped(env, obs, actions):
        if obs is not None:
            scale = {"critic": torch.tensor([-1.0, -1.0, 1.0]), "policy": torch.tensor([-1.0, -1.0])}
            obs = {key: torch.cat([x, x * scale[key]]) for key, x in obs.items()}
        return obs, blocks(same, torch.neg)(actions)

    symmetry = made(grouped, Grouped(), C2)
    tree = symmetry.observation[0]
    assert isinstance(tree, TreeEntry)
    assert tree.children["critic"].sign.tolist() == [-1, -1, 1]
    only = made(grouped, Grouped(), C2, observation_group="policy")
    assert only.observation[0].children["policy"].sign.tolist() == [-1, -1]
    with pytest.raises(SpecError, match="no observation group 'state'"):
        made(grouped, Grouped(), C2, observation_group="state")

    def forgets_one(env, obs, actions):
        obs = None if obs is None else {"policy": torch.cat([obs["policy"], -obs["policy"]])}
        return obs, blocks(same, torch.neg)(actions)

    with pytest.raises(SpecError, match="entry 'critic'"):
        made(forgets_one, Grouped(), C2)


def test_a_fault_in_one_observation_group_is_named_with_the_group():
    def planted(env, obs, actions):
        if obs is not None:
            obs = {key: torch.cat([x, -x]) for key, x in obs.items()}
            obs["critic"][-len(obs["critic"]) // 2 :, 2] *= 0.5
        return obs, blocks(same, torch.neg)(actions)

    with pytest.raises(RepresentationError, match=r"observation\['critic'\] column 2"):
        made(planted, Grouped(), C2)


def test_the_group_of_an_older_function_is_passed_by_name():
    def older(env, obs=None, actions=None, obs_type="policy"):
        if obs is not None:
            assert obs.shape[1] == {"policy": 2, "critic": 3}[obs_type]
        return blocks(same, torch.neg)(obs), blocks(same, torch.neg)(actions)

    assert made(older, Grouped(), C2, observation_group="critic").observation[0].dim == 3


def test_functions_of_numpy_arrays_are_called_with_numpy_arrays():
    def arrays(env, obs, actions):
        assert all(isinstance(x, np.ndarray) for x in (obs, actions) if x is not None)
        return tuple(None if x is None else np.concatenate([x, -x]) for x in (obs, actions))

    assert made(arrays, Plane(), C2).observation[0].sign.tolist() == [-1, -1]


def test_an_affine_map_and_a_turn_in_float32_are_read_as_data():
    def shifted(env, obs, actions):
        return blocks(same, lambda x: 1 - x)(obs), blocks(same, torch.neg)(actions)

    assert made(shifted, Plane(), C2).observation[0].offset.tolist() == [1.0, 1.0]
    C3 = catalog.cyclic(3)

    def turned(env, obs, actions):
        c, s = -0.5, 3**0.5 / 2
        turn = torch.tensor([[c, -s], [s, c]])
        maps = (same, lambda x: x @ turn.T, lambda x: x @ turn)
        return blocks(*maps)(obs), blocks(*maps)(actions)

    matrix = made(turned, Plane(), C3).observation[0].dense()
    np.testing.assert_allclose(np.linalg.matrix_power(matrix, 3), np.eye(2), atol=1e-14)  # float64 products of three
    np.testing.assert_allclose(matrix, [[-0.5, -(3**0.5) / 2], [3**0.5 / 2, -0.5]], atol=1e-6)  # float32 entries


def test_a_nonlinear_map_stays_a_callable_that_acts_on_single_values():
    def squash(x):
        return -torch.where(x > 0, x, 2 * x) * torch.where(x > 0, 0.5, 1.0)

    def curved(env, obs, actions):
        return blocks(same, squash)(obs), blocks(same, torch.neg)(actions)

    symmetry = made(curved, Plane(), C2)
    assert isinstance(symmetry.observation[0], FunctionEntry)
    bound = symmetry.bind(Plane.observation_space, Plane.action_space)
    moved = bound.observation((0,), np.array([2.0, -1.0], np.float32))
    assert moved.tolist() == [-1.0, 2.0]
    assert moved.dtype == np.float32


def test_actions_that_depend_on_the_observation_stay_callables_with_both():
    def framed(env, obs, actions):
        sign = torch.where(obs[:, :1] > 0, -1.0, 1.0)
        observed = blocks(same, lambda x: x * torch.tensor([1.0, -1.0]))(obs)
        return observed, None if actions is None else torch.cat([actions, actions * sign])

    symmetry = made(framed, Plane(), C2)
    bound = symmetry.bind(Plane.observation_space, Plane.action_space)
    action = np.array([0.5, 0.25], np.float32)
    assert bound.action((0,), action, np.array([1.0, 0.0], np.float32)).tolist() == [-0.5, -0.25]
    assert bound.action((0,), action, np.array([-1.0, 0.0], np.float32)).tolist() == [0.5, 0.25]


def test_images_turn_into_named_operators():
    class Pixels(gym.Env):
        observation_space = spaces.Box(0, 255, (1, 5, 5), np.uint8)
        action_space = spaces.Discrete(4)

    def turned(env, obs, actions):
        observed = blocks(*(lambda x, k=k: torch.rot90(x, k, (-2, -1)) for k in range(4)))(obs)
        return observed, blocks(*(lambda a, k=k: (a + k) % 4 for k in range(4)))(actions)

    symmetry = made(turned, Pixels(), C4)
    assert symmetry.observation == (SpatialEntry("rot90"),)
    assert symmetry.action[0].index.tolist() == [1, 2, 3, 0]


def test_environments_without_declared_spaces_are_read_from_what_they_show():
    class Vectorised:
        num_envs, num_actions, device = 3, 2, "cpu"

        def get_observations(self):
            return {"policy": torch.zeros(3, 2)}

    def mirror(env, obs, actions):
        obs = None if obs is None else {"policy": torch.cat([obs["policy"], -obs["policy"]])}
        return obs, blocks(same, torch.neg)(actions)

    assert made(mirror, Vectorised(), C2).observation[0].children["policy"].dim == 2
    with pytest.raises(SpecError, match="expected an environment with observation_space"):
        made(mirror, object(), C2)


def test_unknown_conventions_and_things_that_are_no_function_are_refused():
    with pytest.raises(SpecError, match="rsl_rl"):
        made(quadruped, convention="other")
    with pytest.raises(SpecError, match="expected a function"):
        made(3)


def pendulum(env, obs, actions):
    return blocks(same, lambda x: x * torch.tensor([1.0, -1.0, -1.0]))(obs), blocks(same, torch.neg)(actions)


def test_what_comes_out_is_verified_on_environments_and_networks():
    import symcheck as sc

    mirror = made(pendulum, "Pendulum-v1", C2)
    assert sc.verify_env("Pendulum-v1", mirror, samples=200).verdict == "passed"
    first, second = torch.nn.Linear(3, 4, bias=False), torch.nn.Linear(4, 1, bias=False)
    with torch.no_grad():
        first.weight[2:] = first.weight[:2] * torch.tensor([1.0, -1.0, -1.0])
        second.weight[:, 2:] = -second.weight[:, :2]
    net = torch.nn.Sequential(first, torch.nn.Tanh(), second)
    assert sc.verify_net(net, mirror, samples=200, outputs=["action"]).verdict == "proved"
    with torch.no_grad():
        second.weight[0, 3] *= 1.5
    assert sc.verify_net(net, mirror, samples=200, outputs=["action"]).verdict == "failed"


def test_a_function_with_a_wrong_claim_about_the_environment_fails_there():
    import symcheck as sc

    def wrong(env, obs, actions):  # a group of maps, but cos(theta) does not change sign
        return blocks(same, torch.neg)(obs), blocks(same, torch.neg)(actions)

    report = sc.verify_env("Pendulum-v1", made(wrong, "Pendulum-v1", C2), samples=200)
    assert report.verdict == "failed"


def of_representation(matrices):
    """A correct function: every block multiplies observations and actions by the element's matrix."""

    def moved(env, obs, actions):
        stack = lambda x: None if x is None else torch.cat([x @ torch.tensor(m, dtype=x.dtype).T for m in matrices])  # noqa: E731
        return stack(obs), stack(actions)

    return moved


@pytest.mark.parametrize(
    "group",
    [catalog.trivial(), C2, V4, catalog.symmetric(4), catalog.alternating(4), catalog.hyperoctahedral(4)],
    ids=lambda g: g.name,
)
def test_correct_functions_of_many_groups_are_not_accused(group):
    from symcheck.representations import constructors

    rho = constructors.natural(group)

    class Points(gym.Env):
        observation_space = spaces.Box(-np.inf, np.inf, (rho.dim,), np.float32)
        action_space = spaces.Box(-1.0, 1.0, (rho.dim,), np.float32)

    symmetry = made(of_representation([rho.matrix(g) for g in group.elements()]), Points(), group)
    for entry, g in zip(symmetry.observation, group.generators, strict=True):
        np.testing.assert_array_equal(entry.dense(), rho.matrix(g))


def test_a_fault_in_a_group_too_large_for_all_compositions_is_found():
    from symcheck.representations import constructors

    group = catalog.hyperoctahedral(4)  # order 384: only compositions with generators are tried
    matrices = [constructors.natural(group).matrix(g) for g in group.elements()]
    matrices[200] = -matrices[200]

    class Points(gym.Env):
        observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
        action_space = spaces.Box(-1.0, 1.0, (4,), np.float32)

    with pytest.raises(RepresentationError, match=r"all of them with block 200"):
        made(of_representation(matrices), Points(), group)


@pytest.mark.parametrize(("order", "calls"), [(64, 65), (65, 2)])
def test_all_compositions_are_tried_up_to_order_64_and_those_with_generators_beyond(order, calls):
    group, asked = catalog.cyclic(order), []

    def shifted(observations, actions):
        asked.append(len(observations))
        images = np.stack([np.roll(observations, k, axis=1) for k in range(order)])
        return images, np.repeat(actions[None], order, axis=0)

    samples = Samples(np.random.default_rng(0).normal(size=(2, order)), np.zeros((2, 1)))
    check_agreement(SimpleNamespace(blocks=shifted), samples, group, group.elements())
    assert len(asked) == calls


def test_a_map_that_forgets_part_of_the_group_is_still_the_groups():
    def half(env, obs, actions):  # C4 through its quotient of order two: legal, blocks 2 and 3 repeat 0 and 1
        return blocks(same, torch.neg, same, torch.neg)(obs), blocks(same, torch.neg, same, torch.neg)(actions)

    assert made(half, Plane(), C4).observation[0].sign.tolist() == [-1, -1]


def test_a_small_action_is_judged_beside_large_observations():
    class Wide(gym.Env):
        observation_space = spaces.Box(np.float32([-9e3, 0, 1e5]), np.float32([9e3, np.inf, 3e38]))
        action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def right(env, obs, actions):
        return blocks(same, lambda x: x * torch.tensor([-1.0, 1.0, 1.0]))(obs), blocks(same, lambda a: a.flip(1))(
            actions
        )

    def wrong(env, obs, actions):
        observed, acted = right(env, obs, actions)
        if acted is not None:
            acted[len(acted) // 2 :, 0] *= -1  # of order four
        return observed, acted

    assert made(right, Wide(), C2).action[0].index.tolist() == [1, 0]
    with pytest.raises(RepresentationError, match="action columns 0 to 1"):
        made(wrong, Wide(), C2)


def test_tensor_dictionaries_are_given_where_dictionaries_are_not_understood(monkeypatch):
    import sys
    import types

    class TensorDict(dict):
        def __init__(self, tensors, batch_size):
            super().__init__(tensors)
            self.batch_size = batch_size

        def repeat(self, times):
            return TensorDict({k: v.repeat(times, 1) for k, v in self.items()}, [times * self.batch_size[0]])

    monkeypatch.setitem(sys.modules, "tensordict", types.SimpleNamespace(TensorDict=TensorDict))

    def shipped(env, obs, actions):
        if obs is not None:
            n = obs.batch_size[0]
            obs = obs.repeat(2)
            for key in list(obs.keys()):
                obs[key][n:] *= -1
        return obs, blocks(same, torch.neg)(actions)

    symmetry = made(shipped, Grouped(), C2)
    assert symmetry.observation[0].children["critic"].sign.tolist() == [-1, -1, -1]


class Nested(gym.Env):
    """Two observation groups inside another one, beside a third."""

    observation_space = spaces.Dict(
        {
            "body": spaces.Dict(
                {
                    "joints": spaces.Box(-np.inf, np.inf, (3,), np.float32),
                    "twist": spaces.Box(-np.inf, np.inf, (2,), np.float32),
                }
            ),
            "goal": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        }
    )
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)


def test_groups_inside_groups_become_entries_inside_entries():
    signs = {"joints": [-1.0, 1.0, -1.0], "twist": [1.0, -1.0], "goal": [-1.0, 1.0]}

    def stacked(name, x):
        return torch.cat([x, x * torch.tensor(signs[name])])

    def nested(env, obs, actions):
        if obs is not None:
            body = {name: stacked(name, x) for name, x in obs["body"].items()}
            obs = {"body": body, "goal": stacked("goal", obs["goal"])}
        return obs, blocks(same, torch.neg)(actions)

    tree = made(nested, Nested(), C2).observation[0]
    assert tree.children["goal"].sign.tolist() == signs["goal"]
    inner = tree.children["body"]
    assert isinstance(inner, TreeEntry)
    assert {name: entry.sign.tolist() for name, entry in inner.children.items()} == {
        name: signs[name] for name in ("joints", "twist")
    }


class Shapes:
    """An environment that can only be asked for its sizes."""

    num_actions = 2

    def get_observations(self):
        return torch.zeros(4, 3)


def forgets_last_action(env, obs, actions):
    return (
        None if obs is None else torch.cat([obs, obs * torch.tensor([-1.0, 1.0, 1.0])]),
        None if actions is None else torch.cat([actions, actions[:, [1, 0]]]),
    )


def test_a_check_of_last_actions_that_is_left_out_is_said():
    with pytest.warns(SkippedCheckWarning, match=r"last_action=\(start, stop\)"):
        made = Symmetry.from_augmentation(forgets_last_action, env=Shapes(), group=C2)
    assert [note.code for note in made.notes] == ["last_action_unchecked"]
    with pytest.raises(RepresentationError, match="last action"):
        Symmetry.from_augmentation(forgets_last_action, env=Shapes(), group=C2, last_action=(1, 3))
    assert Symmetry.from_augmentation(forgets_last_action, env=Shapes(), group=C2, last_action=False).notes == ()


def test_the_internal_state_is_taken_along():
    made = Symmetry.from_augmentation(
        forgets_last_action, env=Shapes(), group=C2, last_action=False, state=[[-1, 1, 1, -1]]
    )
    assert made.state[0].sign.tolist() == [-1, 1, 1, -1]


def test_tensordict_is_asked_for_by_name_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensordict", None)

    def grouped(env, obs, actions):
        return (None if obs is None else obs.repeat(2)), None if actions is None else actions.repeat(2, 1)

    class Groups(Shapes):
        def get_observations(self):
            return {"policy": torch.zeros(4, 3)}

    with pytest.raises(SpecError, match="pip install tensordict"):
        Symmetry.from_augmentation(grouped, env=Groups(), group=C2, last_action=False)
