"""A symmetry is checked when it is built; bound to spaces it acts as the interface says."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from symcheck.errors import RepresentationError, SpecError, SymcheckError
from symcheck.groups import catalog
from symcheck.symmetry.spec import parse_group, symmetry_from_mapping, symmetry_from_toml
from symcheck.symmetry.symmetry import Symmetry

C2, C3, C4 = catalog.cyclic(2), catalog.cyclic(3), catalog.cyclic(4)
LINE = spaces.Box(-np.inf, np.inf, (2,), np.float64)
IMAGE = spaces.Box(0, 255, (1, 3, 3), np.uint8)


def rotation(n):
    angle = 2 * np.pi / n
    return [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]


def test_a_quarter_turn_declared_of_order_two_is_refused_where_it_stands():
    with pytest.raises(RepresentationError, match=r"^action"):
        Symmetry("bad", C2, [[-1]], [["+2", "-1"]])


def test_an_action_map_of_order_three_is_no_representation_of_c2():
    with pytest.raises(RepresentationError, match="action"):
        Symmetry("bad", C2, [[-1]], [[1, 2, 0]])


def test_spatial_operators_obey_the_relations_too():
    Symmetry("turn", C4, ["rot90"], [[1, 2, 3, 0]])
    with pytest.raises(RepresentationError, match="observation"):
        Symmetry("turn", C2, ["rot90"], [[1, 0]])


def test_an_affine_reflection_is_an_involution_and_a_shift_is_not():
    Symmetry("valley", C2, [{"signs": [-1, -1], "offset": ["-pi/3", 0]}], [[2, 1, 0]])
    with pytest.raises(RepresentationError, match="observation"):
        Symmetry("shift", C2, [{"signs": [1, 1], "offset": [1, 0]}], [[2, 1, 0]])


def test_relations_are_checked_inside_dict_entries():
    with pytest.raises(RepresentationError, match=r"observation\['v'\]"):
        Symmetry("bad", C2, [{"v": ["+2", "-1"]}], [[1, 0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation": [[-1], [-1]]}, "expected 1 entry, one per generator of C2; got 2"),
        ({"observation": "rot90"}, "expected 1 entry"),
        ({"action": {"a": [1, 0]}}, "expected 1 entry"),
        ({"name": ""}, "expected a name"),
        ({"group": "C2"}, "expected a group"),
    ],
)
def test_what_is_no_symmetry_is_refused(arguments, message):
    good = {"name": "m", "group": C2, "observation": [[-1]], "action": [[1, 0]]}
    with pytest.raises(SpecError, match=message):
        Symmetry(**{**good, **arguments})


def test_entries_of_two_sizes_are_refused():
    with pytest.raises(SpecError, match="sizes"):
        Symmetry("m", catalog.klein_four(), [[-1, -1], [-1]], [[1, 0], [0, 1]])


def test_representations_are_what_layers_take():
    mirror = Symmetry("m", C2, [[-1, -1, -1, -1]], [[1, 0]])
    np.testing.assert_array_equal(mirror.observation_representation.matrix(C2.generators[0]), -np.eye(4))
    np.testing.assert_array_equal(mirror.action_representation.matrix(C2.generators[0]), [[0, 1], [1, 0]])
    again = Symmetry("m", C2, mirror.observation_representation, mirror.action_representation)
    assert again.action[0].permutation().tolist() == [1, 0]


def test_an_image_symmetry_has_no_vector_representation_and_says_what_to_use():
    turn = Symmetry("turn", C4, ["rot90"], [[1, 2, 3, 0]])
    with pytest.raises(SpecError, match="spatial="):
        _ = turn.observation_representation


def test_a_discrete_action_goes_to_p_of_a():
    turn = Symmetry("turn", C3, [rotation(3)], [[1, 2, 0]])
    bound = turn.bind(LINE, spaces.Discrete(3))
    assert [int(bound.action((0,), a, None)) for a in range(3)] == [1, 2, 0]
    np.testing.assert_array_equal(bound.action_batch((0, 0), np.arange(3), None), [2, 0, 1])


def test_discrete_spaces_that_start_elsewhere_are_shifted():
    bound = Symmetry("m", C2, [[-1, -1]], [[1, 0]]).bind(LINE, spaces.Discrete(2, start=5))
    assert int(bound.action((0,), 5, None)) == 6


def test_batches_agree_with_single_values():
    turn = Symmetry("turn", C3, [rotation(3)], [[1, 2, 0]])
    bound = turn.bind(LINE, spaces.Discrete(3))
    xs = np.random.default_rng(0).normal(size=(7, 2))
    for word in [(), (0,), (0, 0)]:
        singles = [bound.observation(word, x) for x in xs]
        # a matrix product of another shape may round each of its two additions differently
        rounding = 4 * np.finfo(float).eps
        np.testing.assert_allclose(bound.observation_batch(word, xs), np.stack(singles), rtol=0, atol=rounding)


def test_state_dependent_actions_compose_in_the_homomorphism_direction():
    # K_g^s adds the index of the sector that s lies in; K_gh^s = K_g^{hs} K_h^s, h first. On a group of order 3 the
    # other direction gives another answer.
    turn = Symmetry("turn", C3, [lambda o: (o + 1) % 3], [lambda a, o: (a + int(o[0])) % 9])
    space = spaces.Box(0, 2, (1,), np.int64)
    bound = turn.bind(space, spaces.Discrete(9))
    start = np.array([1])
    first = bound.action((0,), 0, start)
    assert int(first) == 1
    second = bound.action((0,), first, bound.observation((0,), start))
    assert int(second) == 3
    assert int(bound.action((0, 0), 0, start)) == 3


def test_images_are_turned_counter_clockwise():
    bound = Symmetry("turn", C4, ["rot90"], [[1, 2, 3, 0]]).bind(IMAGE, spaces.Discrete(4))
    image = np.arange(9, dtype=np.uint8).reshape(1, 3, 3)
    np.testing.assert_array_equal(bound.observation((0,), image)[0], np.rot90(image[0]))
    assert bound.observation((0,), image).dtype == np.uint8


def test_a_missing_dict_key_stays_as_it_is():
    space = spaces.Dict({"x": spaces.Box(-1, 1, (1,)), "goal": spaces.Box(-1, 1, (1,))})
    bound = Symmetry("m", C2, [{"x": [-1]}], [[1, 0]]).bind(space, spaces.Discrete(2))
    image = bound.observation((0,), {"x": np.array([1.0]), "goal": np.array([0.5])})
    assert image["x"] == -1.0
    assert image["goal"] == 0.5


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        ([-1, -1, -1], [1, 0], r"observation\[0\]: the entry acts on 3 components, but the space has 4"),
        ([-1] * 4, [-1, -1], r"action\[0\]: the entry must be a permutation of the 2 values"),
        ([-1] * 4, [1, 1], r"action\[0\]: the entry must be a permutation of the 2 values"),
        ([-1] * 4, [2, 1, 0], r"action\[0\]: the entry acts on 3 values, but the space has 2"),
        ("rot90", [1, 0], "acts on the last two axes of an image"),
        ({"x": [-1]}, [1, 0], "needs a Dict or Tuple space"),
    ],
)
def test_an_entry_that_does_not_fit_its_space_is_refused_with_both_sizes(observation, action, message):
    env = gym.make("CartPole-v1")
    group = C4 if observation == "rot90" else C2
    with pytest.raises(SpecError, match=message):
        Symmetry("m", group, [observation], [action]).bind(env.observation_space, env.action_space)


def test_negating_unsigned_pixels_is_refused():
    with pytest.raises(SpecError, match="no negative numbers"):
        Symmetry("m", C2, [[-1] * 9], [[1, 0]]).bind(IMAGE, spaces.Discrete(2))


def test_a_callable_gets_a_copy_and_its_shape_is_checked():
    def spoil(obs):
        obs[:] = 0
        return obs[:1]

    bound = Symmetry("m", C2, [spoil], [[1, 0]]).bind(LINE, spaces.Discrete(2))
    x = np.ones(2)
    with pytest.raises(SpecError, match=r"returned an array of shape \(1,\)"):
        bound.observation((0,), x)
    np.testing.assert_array_equal(x, np.ones(2))


def test_a_callable_that_raises_is_named_with_its_argument():
    bound = Symmetry("m", C2, [lambda obs: obs["x"]], [[1, 0]]).bind(LINE, spaces.Discrete(2))
    with pytest.raises(SpecError, match=r"observation\[0\]: the callable raised IndexError"):
        bound.observation((0,), np.ones(2))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (lambda obs: {"x": -obs["x"]}, r"observation\[0\]: .* must return the parts 'x', 'at'"),
        (lambda obs: {**obs, "y": 0}, "must return the parts 'x', 'at'"),
        (lambda obs: (-obs["x"], obs["at"]), "must return the parts 'x', 'at'"),
        (lambda obs: None, "must return the parts 'x', 'at', but returned None"),
        (lambda obs: {**obs, "x": obs["x"][:1]}, r"observation\[0\]\['x'\]: .* shape \(1,\)"),
        (lambda obs: {**obs, "x": (1.0, [2.0])}, r"\['x'\]: .* shape \(\)"),
        (lambda obs: {**obs, "x": ["1", "2"]}, "<U1"),
        (lambda obs: {**obs, "at": (obs["at"][0],)}, r"\['at'\]: .* must return the parts 0, 1"),
        (lambda obs: {**obs, "at": ("left", 1)}, r"\['at'\]\[0\]: .* must return one whole number"),
    ],
)
def test_the_image_that_a_callable_returns_has_the_parts_and_shapes_of_its_value(image, message):
    """An image of another form ended in an error of numpy while it was compared."""
    places = spaces.Tuple([spaces.Discrete(3), spaces.Discrete(3)])
    space = spaces.Dict(x=LINE, at=places)
    value = {"x": np.array([1.0, 2.0]), "at": (0, 2)}
    swapped = Symmetry("m", C2, [lambda obs: {"at": list(obs["at"])[::-1], "x": list(-obs["x"])}], [[1, 0]])
    right = swapped.bind(space, spaces.Discrete(2)).observation((0,), value)
    assert right["at"] == (2, 0)
    assert right["x"].tolist() == [-1, -2]
    with pytest.raises(SpecError, match=message):
        Symmetry("m", C2, [image], [[1, 0]]).bind(space, spaces.Discrete(2)).observation((0,), value)


def test_the_claim_reads_as_formulas():
    bound = Symmetry("mirror", C2, [["-1", "-2"]], [[1, 0]]).bind(LINE, spaces.Discrete(2))
    assert bound.claim == {"observation": ["mirror: (o0, o1) -> (-o0, -o1)"], "action": ["mirror: 0 <-> 1"]}


def test_a_toml_file_gives_the_symmetry_that_python_gives(tmp_path):
    path = tmp_path / "mirror.toml"
    path.write_text('name = "m"\ngroup = "cyclic(2)"\nobservation = [[-1, -1]]\naction = [[1, 0]]\ninitial = false\n')
    symmetry = symmetry_from_toml(path)
    assert symmetry.group == C2
    assert not symmetry.initial
    np.testing.assert_array_equal(symmetry.observation[0].dense(), -np.eye(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": None}, "is missing group"),
        ({"speed": 3}, "unknown fields speed"),
        ({"group": "cyclical(2)"}, "Did you mean 'cyclic'"),
        ({"group": "cyclic(2"}, "expected the name of a group"),
        ({"group": "cyclic('a')"}, "group"),
        ({"group": "__import__('os')"}, "unknown group"),
        ({"initial": "yes"}, "expected initial = true or false"),
    ],
)
def test_a_mapping_that_is_no_symmetry_is_refused(change, message):
    data = {"name": "m", "group": "cyclic(2)", "observation": [[-1]], "action": [[1, 0]], **change}
    with pytest.raises(SymcheckError, match=message):
        symmetry_from_mapping({key: value for key, value in data.items() if value is not None}, "spec.toml")


@pytest.mark.parametrize("text", ["product(cyclic(2), dihedral(4))", "C2 x D4"])
def test_products_of_groups_can_be_named(text):
    assert parse_group(text, "group").order == 16


def test_a_group_of_absurd_size_is_refused_at_once():
    with pytest.raises(SymcheckError, match="group"):
        parse_group("cyclic(1000000000)", "group")


def test_entries_of_a_tuple_may_be_a_ragged_list():
    space = spaces.Tuple([LINE, spaces.Discrete(2)])
    bound = Symmetry("m", C2, [[[-1, -1], [1, 0, 2]]], [[1, 0]])
    with pytest.raises(SpecError, match="acts on 3 values"):
        bound.bind(space, spaces.Discrete(2))
    image = Symmetry("m", C2, [["identity", [1, 0]]], [[1, 0]]).bind(space, spaces.Discrete(2))
    assert image.observation((0,), (np.ones(2), 0))[1] == 1


@pytest.mark.parametrize(
    ("observation", "told", "advice"),
    [
        ([{"a": [-1]}], "a mapping of sub-spaces", "FlattenObservation"),
        (["flip_lr"], "'flip_lr'", "BasisConv2d"),
        ([lambda obs: -obs], "a callable", "as data: signs, a permutation or a matrix"),
        ([{"signs": [-1, 1], "offset": [1, 0]}], "a map with an offset", "centred"),
        (["identity"], "the identity", "a list with 1 for each component"),
    ],
)
def test_what_layers_cannot_take_is_named_in_words_with_what_they_take(observation, told, advice):
    symmetry = Symmetry("m", C2, observation, [[1, 0]])
    with pytest.raises(SpecError, match=f"got {told}\\.") as raised:
        _ = symmetry.observation_representation
    assert advice in str(raised.value)
    assert "Entry" not in str(raised.value)


TURNED = {"signs": [-1, -1], "offset": [2, 2]}


def test_choices_and_bits_are_exchanged_or_turned_over():
    bits, choices = spaces.MultiBinary(2), spaces.MultiDiscrete([3, 3])
    turned = Symmetry("turned", C2, [{"signs": [-1, -1], "offset": [1, 1]}], [TURNED]).bind(bits, choices)
    np.testing.assert_array_equal(turned.observation((0,), np.array([0, 1], np.int8)), [1, 0])
    action = turned.action((0,), np.array([0, 1]), np.array([0, 1], np.int8))
    np.testing.assert_array_equal(action, [2, 1])
    assert choices.contains(action)
    swapped = Symmetry("swapped", C2, [[1, 0]], [[1, 0]]).bind(bits, choices)
    np.testing.assert_array_equal(swapped.action((0,), np.array([0, 2]), np.array([0, 1], np.int8)), [2, 0])


@pytest.mark.parametrize(
    ("choices", "entry"), [([3, 3], {"signs": [-1, -1], "offset": [1, 2]}), ([3, 5], [1, 0]), ([3, 5], TURNED)]
)
def test_a_map_that_leaves_the_choices_is_refused_with_the_value_that_it_takes_out(choices, entry):
    symmetry = Symmetry("m", C2, [[-1, -1]], [entry])
    with pytest.raises(SpecError, match="which is not in MultiDiscrete"):
        symmetry.bind(LINE, spaces.MultiDiscrete(choices))


UNEVEN = spaces.Box(np.array([-1.0, -2.0]), np.array([1.0, np.inf]), dtype=np.float64)


@pytest.mark.parametrize(
    ("group", "entry", "space", "moved"),
    [
        (C2, ["-1", "+2"], UNEVEN, None),
        (C2, ["+1", "-2"], UNEVEN, r"a = \[-1.0, 6.0\] is \[-1.0, -6.0\]"),
        (C2, ["+2", "+1"], UNEVEN, r"a = \[-1.0, 6.0\] is \[6.0, -1.0\]"),
        (C2, [-1], spaces.Box(0, 1, (1,)), r"a = \[1.0\] is \[-1.0\]"),
        (C2, {"signs": [-1], "offset": [1]}, spaces.Box(0, 1, (1,)), None),
        (C2, {"signs": [-1], "offset": [9]}, spaces.Box(0, np.inf, (1,)), r"a = \[20.0\] is \[-11.0\]"),
        (C4, ["-2", "+1"], spaces.Box(-1, 1, (2,)), None),
        (C3, rotation(3), spaces.Box(-1, 1, (2,)), "the image of a = "),
        (C3, rotation(3), spaces.Box(-np.inf, np.inf, (2,)), None),
    ],
)
def test_an_action_map_must_keep_the_corners_of_a_box_inside(group, entry, space, moved):
    claim = Symmetry("moved", group, [[-1, -1]] if group is C2 else [rotation(group.order)], [entry])
    if moved is None:
        claim.bind(LINE, space)
        return
    with pytest.raises(SpecError, match=rf"action\[0\]: the action map leaves the action space: .*{moved}"):
        claim.bind(LINE, space)


def test_bytes_turned_over_are_an_image_in_negative():
    negative = Symmetry("negative", C2, [{"signs": [-1] * 9, "offset": [255] * 9}], [[1, 0]])
    image = np.arange(9, dtype=np.uint8).reshape(1, 3, 3)
    np.testing.assert_array_equal(negative.bind(IMAGE, spaces.Discrete(2)).observation((0,), image), 255 - image)


@pytest.mark.parametrize("text", [3, None, ["C2"], "(1, 2)", "cyclic(2), cyclic(3)", "'C2'(2)", "12(3)"])
def test_what_names_no_group_is_refused_whatever_its_type(text):
    with pytest.raises(SpecError, match=r"expected the name of a group such as 'cyclic\(2\)'"):
        parse_group(text, "group")


def test_the_start_is_claimed_unless_it_is_declined():
    assert Symmetry("m", C2, [[-1]], [[1, 0]]).initial
    assert not Symmetry("m", C2, [[-1]], [[1, 0]], initial=False).initial
