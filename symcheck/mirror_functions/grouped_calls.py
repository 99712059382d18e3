"""Calls a mirror function on observation groups of known widths, in the form that it accepts.

Training libraries call `fn(env=..., obs=..., actions=..., obs_type=...)`: rsl_rl 2 with tensors, one observation group
per call; rsl_rl 3 and later and Isaac Lab with a TensorDict of groups; others with dictionaries, or with an object that
has `augment_observations` and `augment_actions`. Errors in a return value are recorded, not raised, if the value can
still be compared.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from symcheck.array_types import Floats
from symcheck.errors import SpecError
from symcheck.mirror_functions.batched_values import to_array

Form = Literal["tensor", "mapping", "tensordict", "per_group", "array", "arrays"]
WHERE = "TARGET"
_WORDS: dict[Form, str] = {
    "tensor": "a tensor",
    "mapping": "a dictionary of tensors",
    "tensordict": "a TensorDict",
    "per_group": "one tensor per group",
    "array": "a NumPy array",
    "arrays": "a dictionary of NumPy arrays",
}


@dataclass(frozen=True)
class Answer:
    """The return value of a mirror function.

    Attributes:
        observations: (blocks, rows, columns) by group; None for a group that was returned without images.
        actions: (blocks, rows, columns); None if none were given.
        changed: groups (and "action") that the function changed in place.
        narrowed: the dtype by group (and "action"), if it cannot represent float32.
    """

    observations: Mapping[str, Floats | None]
    actions: Floats | None
    changed: tuple[str, ...] = ()
    narrowed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupedFunction:
    """A mirror function on observation groups.

    Attributes:
        function: the function as given.
        widths: the number of columns of every observation group, in order.
        action_width: the number of columns of the action.
        order: |G|, the number of blocks.
        env: the value passed as `env`.
        form: the form in which observations are passed.
    """

    function: Callable[..., Any]
    widths: Mapping[str, int]
    action_width: int
    order: int
    env: Any = None
    form: Form = "tensor"

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def images(self, observations: Mapping[str, Floats] | None, actions: Floats | None) -> Answer:
        """The images of a batch under every block.

        Args:
            observations: (rows, columns) by group, or None.
            actions: (rows, columns), or None.

        Returns:
            The blocks.

        Raises:
            SpecError: the function raised an error, or returned a value with a wrong form, width or number of blocks.
        """
        if self.form == "per_group" and observations is not None:
            return self._images_by_group(observations, actions)
        given = None if observations is None else self._convert(observations)
        return self._read(given, observations, actions, self._obs_type(next(iter(self.widths), "policy")))

    def _images_by_group(self, observations: Mapping[str, Floats], actions: Floats | None) -> Answer:
        """Call the function group by group, with actions in the first call, as in rsl_rl."""
        images: dict[str, Floats | None] = {}
        acted: Floats | None = None
        changed: list[str] = []
        narrowed: dict[str, str] = {}
        for k, (name, table) in enumerate(observations.items()):
            single = replace(self, form="tensor", widths={name: self.widths[name]})
            answer = single._read(
                single._convert({name: table}), {name: table}, actions if k == 0 else None, self._obs_type(name)
            )
            images.update(answer.observations)
            changed += answer.changed
            narrowed.update(answer.narrowed)
            acted = answer.actions if k == 0 else acted
        return Answer(images, acted, tuple(changed), narrowed)

    def _obs_type(self, name: str) -> str:
        return name if name in ("policy", "critic") or len(self.widths) > 1 else "policy"

    def _read(self, given: Any, observations: Mapping[str, Floats] | None, actions: Floats | None, kind: str) -> Answer:
        acted = None if actions is None else self._tensor(actions)
        from symcheck.mirror_functions.tensor_groups import tensordict_at_hand  # loads torch

        with tensordict_at_hand():
            answer = self._call(given, acted, kind)
        changed = [] if observations is None else self._changed_groups(given, observations)
        if actions is not None and not np.array_equal(to_array(acted), actions.astype(np.float32)):
            changed.append("action")
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            count = f" of {len(answer)}" if isinstance(answer, tuple | list) else ""
            raise SpecError(
                f"expected {self.name} to return (observations, actions), got {type(answer).__name__}{count}.",
                where=WHERE,
            )
        rows = max(len(table) for table in (*(observations or {}).values(), *([] if actions is None else [actions])))
        return Answer(
            {} if observations is None else self._observed_blocks(answer[0], rows),
            None if actions is None else self._blocks(answer[1], rows, self.action_width, "actions"),
            tuple(changed),
            self._narrowed(answer, observations, actions),
        )

    def _narrowed(
        self, answer: Any, observations: Mapping[str, Floats] | None, actions: Floats | None
    ) -> dict[str, str]:
        """Returned dtypes that cannot represent float32, by group."""
        parts = {"action": answer[1]} if actions is not None else {}
        if observations is not None:
            grouped = hasattr(answer[0], "keys")
            parts.update({name: _entry(answer[0], name) if grouped else answer[0] for name in self.widths})
        kinds = {name: str(getattr(value, "dtype", "")).removeprefix("torch.") for name, value in parts.items()}
        return {name: kind for name, kind in kinds.items() if kind not in ("", "float32", "float64", "longdouble")}

    def _call(self, observations: Any, actions: Any, kind: str) -> Any:
        names = _parameters(self.function)
        by_keyword = names is None or {"env", "obs", "actions"} <= set(names) or "**" in names
        extra: dict[str, Any] = {}
        if names is not None and "obs_type" in names:
            extra["obs_type"] = kind
        if names is not None and "is_critic" in names:
            extra["is_critic"] = kind == "critic"
        if by_keyword:
            return self.function(env=self.env, obs=observations, actions=actions, **extra)
        return self.function(self.env, observations, actions, **extra)

    def _tensor(self, table: Floats) -> Any:
        # float32, as returned by simulators; a new copy, which the function may modify.
        array = np.array(table, dtype=np.float32)
        if self.form in ("array", "arrays"):
            return array
        import torch

        return torch.from_numpy(array)

    def _convert(self, observations: Mapping[str, Floats]) -> Any:
        tensors = {name: self._tensor(table) for name, table in observations.items()}
        if self.form in ("tensor", "array"):
            return next(iter(tensors.values()))
        if self.form == "tensordict":
            from symcheck.mirror_functions.tensor_groups import tensor_groups

            return tensor_groups(tensors, len(next(iter(observations.values()))))
        return tensors

    def _changed_groups(self, given: Any, observations: Mapping[str, Floats]) -> list[str]:
        single = self.form in ("tensor", "array")
        return [
            name
            for name, table in observations.items()
            if not _is_unchanged(given if single else _entry(given, name), table)
        ]

    def _observed_blocks(self, answer: Any, rows: int) -> dict[str, Floats | None]:
        if answer is None:
            raise SpecError(
                f"observations were given, so {self.name} must return observations, but it returned None.", where=WHERE
            )
        if self.form in ("tensor", "array"):
            (name,) = self.widths
            if hasattr(answer, "keys"):
                answer = _entry(answer, name)
            return {name: self._blocks(answer, rows, self.widths[name], f"observations of {name!r}")}
        if not hasattr(answer, "keys"):
            raise SpecError(
                f"observations were given by group, so {self.name} must return them by group, but it "
                f"returned {type(answer).__name__}.",
                where=WHERE,
            )
        held = list(answer.keys())
        blocks: dict[str, Floats | None] = {}
        for name, width in self.widths.items():
            value = _entry(answer, name) if name in held else None
            # A group that is missing, or has its original length, has no images.
            lost = value is None or len(to_array(value)) == rows != rows * self.order
            blocks[name] = None if lost else self._blocks(value, rows, width, f"observations of {name!r}")
        if all(block is None for block in blocks.values()) and blocks:
            raise SpecError(
                f"{self.name} returns no observation group with {self.order} blocks, one per element of the group.",
                where=WHERE,
                remedy="Stack the images of the whole batch, starting with the identity.",
            )
        return blocks

    def _blocks(self, value: Any, rows: int, width: int, what: str) -> Floats:
        if value is None:
            raise SpecError(f"{what} were given, so {self.name} must return them, but it returned None.", where=WHERE)
        table = to_array(value).astype(np.float64)
        if table.ndim != 2 or table.shape[1] != width:
            raise SpecError(f"expected {what} of shape (rows, {width}), got {table.shape}.", where=WHERE)
        if len(table) != rows * self.order:
            count = f"{len(table) // rows} blocks" if len(table) % rows == 0 else f"{len(table)} rows"
            raise SpecError(
                f"expected {self.order} blocks of {what}, one per element of the layout's group, got {count} for a "
                f"batch of {rows}.",
                where=WHERE,
                remedy='Stack whole batches, the identity\'s first, and set group = "K4" or "C4" for four blocks.',
            )
        return table.reshape(self.order, rows, width)


def _entry(groups: Any, name: str) -> Any:
    return groups[name] if name in list(groups.keys()) else None


def _is_unchanged(value: Any, table: Floats) -> bool:
    if value is None:
        return False
    array = to_array(value)
    return array.shape == table.shape and bool(np.array_equal(array, table.astype(np.float32)))


def _parameters(function: Callable[..., Any]) -> list[str] | None:
    """Names of the parameters, "**" for arbitrary keywords; None if they cannot be determined."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return ["**" if p.kind is inspect.Parameter.VAR_KEYWORD else p.name for p in parameters]


def as_function(target: Any) -> Callable[..., Any]:
    """Convert a target to one function: a function itself, or an object with separate methods.

    Args:
        target: `fn(env, obs, actions)`, or an object with `augment_observations(obs, env, names)` and
            `augment_actions(actions)`, or with `mirror_...` methods of the same arguments.

    Raises:
        SpecError: neither.
    """
    if hasattr(target, "augment_observations") and hasattr(target, "augment_actions"):
        return functools.partial(_call_augmenter, target)
    if not callable(target):
        raise SpecError(
            f"expected a function fn(env, obs, actions), got {type(target).__name__}.",
            where=WHERE,
            remedy=(
                "An object with augment_observations(obs, env, names) and augment_actions(actions) is also accepted."
            ),
        )
    return target  # type: ignore[no-any-return]


def _call_augmenter(target: Any, *, env: Any, obs: Any, actions: Any, obs_type: str = "policy") -> tuple[Any, Any]:
    accepted = len(_parameters(target.augment_observations) or ["obs", "env", "names"])
    observed = None
    if obs is not None:
        names = getattr(target, "observation_names", None) or [obs_type]
        observed = target.augment_observations(*(obs, env, names)[:accepted])
    return observed, None if actions is None else target.augment_actions(actions)


def choose_form(candidate: GroupedFunction, observations: Mapping[str, Floats], actions: Floats) -> GroupedFunction:
    """The same function with observations in the form that it accepts.

    Args:
        candidate: the function.
        observations: a batch by group.
        actions: a batch.

    Raises:
        SpecError: the function accepts no form (the message gives its error for each), or it reads an attribute of an
            environment that is None.
    """
    refusals: dict[Form, Exception] = {}
    for form in _forms(candidate):
        attempt = replace(candidate, form=form)
        try:
            attempt.images(observations, actions)
        except SpecError:  # it accepted the input: report the problem of its result
            return attempt
        except Exception as error:
            _refuse_missing_environment(candidate, error)
            refusals[form] = error
            continue
        return attempt
    forms: dict[str, list[str]] = {}
    for form, raised in refusals.items():
        forms.setdefault(f"{type(raised).__name__}: {str(raised).rstrip('.')}", []).append(_WORDS[form])
    said = "; ".join(f"given {' or '.join(words)} it raised {text.rstrip(': ')}" for text, words in forms.items())
    raise SpecError(
        f"{candidate.name} accepts observations of the layout in none of the supported forms: {said}.",
        where=WHERE,
        remedy=f"The layout has {', '.join(f'{name} ({width} columns)' for name, width in candidate.widths.items())} "
        f"and {candidate.action_width} actions; check that the function expects these sizes.",
    ) from next(iter(refusals.values()))


def _forms(candidate: GroupedFunction) -> list[Form]:
    names = _parameters(candidate.function) or []
    code = getattr(inspect.unwrap(candidate.function), "__globals__", {})
    mentions_groups = "TensorDict" in code or "tensordict" in code
    grouped: list[Form] = ["tensordict", "mapping"] if mentions_groups else ["mapping", "tensordict"]
    if len(candidate.widths) == 1:
        first: list[Form] = [*grouped, "tensor"] if mentions_groups else ["tensor", *grouped]
        return [*first, "array", "arrays"]
    # rsl_rl 2 and holosoma take one group per call.
    single = "obs_type" in names or "is_critic" in names
    return ["per_group", *grouped, "arrays"] if single else [*grouped, "arrays"]


def _refuse_missing_environment(candidate: GroupedFunction, error: BaseException) -> None:
    """Name the attribute of `env` that a function reads although no environment was given."""
    if candidate.env is None and isinstance(error, AttributeError) and error.obj is None and error.name:
        raise SpecError(
            f"{candidate.name} reads the attribute {error.name!r} of env, which is None here.",
            where=WHERE,
            remedy="Pass the environment with --env TARGET (env=... in Python).",
        ) from error
