"""Detects strings that contain memory addresses, and iteration over sets: both differ between processes.

`f"{object()}"` ends in an address, and a set of strings is ordered by hashes with a random seed. Neither shows in a
recorded call. Therefore one call is followed instruction by instruction. At an instruction that formats or iterates,
its operands are recomputed from the function's variables, on a stack in which some values stay unknown.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from symcheck.engine.networks.capture.instructions import Step, steps_of
from symcheck.engine.networks.capture.own_code import is_own_code

_ADDRESS = "0x"
"""The prefix of an address in a string."""
_FORMATTING = frozenset(["FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"])
_CALLS = frozenset(["CALL", "CALL_KW", "CALL_FUNCTION_EX"])
_ITERATING = frozenset(["GET_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND"])
_TEXTS = (str, repr, ascii, format, hash, id)
"""Functions that convert an object to a string, or return its address."""
_BY_ELEMENTS = (len, sorted, set, frozenset, min, max, any, all, isinstance, bool, type, sum)
"""Functions of a set that do not depend on its order."""
_PURE = (*_BY_ELEMENTS, int, float, abs, round, tuple, list, range, enumerate, zip, getattr)
_NAMES = frozenset(["str", "repr", "ascii", "format", "map", "set", "frozenset", "keys", "union", "difference"])
_BY_KEY = (sorted, min, max)
"""Functions that keep the order of equal elements, or take the first of them, where a key is given."""
_GIVING_NO_SET = (sorted, list, tuple, dict, range, enumerate, zip, map, filter, reversed, str, int, float, bool)
_ITERATING_ONE = (list, tuple, dict, enumerate, zip, map, filter, reversed, iter)
_ELEMENTWISE = frozenset(["builtins", "math", "cmath", "typing", "warnings", "logging", "torch", "numpy"])
"""Modules whose functions iterate over no set, apart from the functions above."""


@dataclass
class _Unknown:
    """A value that is not recomputed.

    Attributes:
        is_set: whether the value is a set; None if that is unknown.
        gives: for a function, whether it returns a set; None if that is unknown.
    """

    is_set: bool | None = None
    gives: bool | None = None


_NULL = object()


def depends_on_process(run: Callable[[], Any], functions: Iterable[types.CodeType], *, sets: bool) -> tuple[str, str]:
    """What a call uses that differs between processes, with file and line; "" if there is none.

    Args:
        run: calls the network.
        functions: the network's own code that runs in a call.
        sets: whether the network or its globals hold sets.
    """
    codes = list(functions)
    sets = sets or any(_makes_sets(code) for code in codes)
    sites = {code: places for code in codes if (places := _sites(code, sets=sets))}
    if not sites:
        return "", ""
    told: list[tuple[str, str]] = []
    pieces: dict[tuple[types.CodeType, int], list[Step]] = {}

    own, given_sets = set(codes), set[types.FrameType]()

    def enter(frame: types.FrameType, _event: str, _argument: Any) -> Any:
        if frame.f_code not in own:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, frame.f_code in sites
        return follow

    def follow(frame: types.FrameType, event: str, argument: Any) -> Any:
        code, place = frame.f_code, frame.f_lasti
        if event == "return" and is_unordered(argument) and frame.f_back is not None:
            given_sets.add(frame.f_back)
        if event == "opcode" and not told and place in sites[code]:
            if (code, place) not in pieces:
                pieces[code, place] = _piece(code, place)
            sys.settrace(None)  # the next steps may run code that formats an object
            try:
                what = _Stack(frame, sets=frame in given_sets or _has_sets(frame)).what_it_uses(pieces[code, place])
            finally:
                sys.settrace(enter)
            if what:
                told.append((what, f"{Path(code.co_filename).name}:{frame.f_lineno}"))
        return follow

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run()
    finally:
        sys.settrace(before)
    return told[0] if told else ("", "")


def is_unordered(item: Any) -> bool:
    """Whether the iteration order of an object depends on hashes that differ between processes."""
    return isinstance(item, set | frozenset) and len(item) > 1 and not all(map(_is_number, item))


def _is_number(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, tuple) and all(map(_is_number, item)))


def _makes_sets(code: types.CodeType) -> bool:
    steps = steps_of(code)
    for place, step in enumerate(steps):
        following = steps[place + 1].name if place + 1 < len(steps) else ""
        if step.name == "LOAD_CONST" and is_unordered(step.value) and following != "CONTAINS_OP":
            return True
        if step.name == "SET_ADD" or (step.name == "BUILD_SET" and not _are_numbers(steps[place - step.count : place])):
            return True
    return not {"set", "frozenset", "keys"}.isdisjoint(code.co_names)


def _has_sets(frame: types.FrameType) -> bool:
    """Whether code makes sets, or names one of its variables or globals that is a set."""
    named = [frame.f_globals.get(word) for word in frame.f_code.co_names]
    return _makes_sets(frame.f_code) or any(map(is_unordered, (*named, *frame.f_locals.values())))


def _are_numbers(steps: Sequence[Step]) -> bool:
    return all(step.name == "LOAD_CONST" and _is_number(step.value) for step in steps)


def _sites(code: types.CodeType, *, sets: bool) -> set[int]:
    """The offsets of instructions to examine."""
    texts = [item for item in code.co_consts if isinstance(item, str)]
    formats = not _NAMES.isdisjoint(code.co_names) or any("%" in text or "{" in text for text in texts)
    wanted = {*_FORMATTING, *(_ITERATING if sets else ())}
    places = set()
    for step in steps_of(code):
        remainder = step.name == "BINARY_OP" and step.printed.startswith("%")
        if step.name in wanted or remainder or (step.name in _CALLS and (formats or sets)):
            places.add(step.offset)
    return places


def _piece(code: types.CodeType, place: int) -> list[Step]:
    """The straight-line instructions up to and including the one at an offset."""
    piece: list[Step] = []
    for step in steps_of(code):
        if step.is_target:
            piece = []
        piece.append(step)
        if step.offset == place:
            break
        if "JUMP" in step.name or step.name.startswith(("RETURN", "FOR_ITER", "YIELD", "SEND")):
            piece = []
    return piece


class _Stack:
    """The values on the stack of a running function, as far as they can be recomputed without side effects.

    Args:
        frame: the running function.
        sets: whether a value that is unknown may be a set: the function has some, or was given one.
    """

    def __init__(self, frame: types.FrameType, *, sets: bool) -> None:
        self._frame = frame
        self._sets = sets
        self._items: list[Any] = []

    def what_it_uses(self, piece: list[Step]) -> str:
        """What the last instruction uses that differs between processes; "" if nothing does."""
        for step in piece[:-1]:
            self._run(step)
        last = piece[-1]
        if last.name in _FORMATTING:
            has_spec = last.name == "FORMAT_WITH_SPEC" or (last.name == "FORMAT_VALUE" and last.count & 4)
            return _text_of(self._top(2 if has_spec else 1))
        if last.name in _ITERATING:
            return _order_of(self._top(), known=not self._sets)
        if last.name == "BINARY_OP":
            left, right = self._top(2), self._top()
            values = right if isinstance(right, tuple) else (right,)
            if isinstance(left, _Unknown):  # a number or a string; a string formats objects that are not numbers
                values = tuple(item for item in values if not isinstance(item, _Unknown))
            return next(filter(None, map(_text_of, values)), "") if isinstance(left, str | _Unknown) else ""
        if last.name == "CALL_FUNCTION_EX":
            return _order_of(self._top(1 + (last.count & 1)), known=not self._sets)
        return self._used_by_call(last)

    def _used_by_call(self, last: Step) -> str:
        function, given = self._take_call(last)
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if any(function is item for item in _TEXTS) or (
            isinstance(owner, str) and name in ("format", "format_map", "__mod__")
        ):
            return next(filter(None, map(_text_of, given)), "")
        if is_unordered(owner) and name == "pop":
            return _order_of(owner)
        parts = [item for item in given if not any(item is text for text in _TEXTS)]
        if len(parts) < len(given) and function not in (isinstance, issubclass):  # as in map(str, items)
            rows = [part if isinstance(part, list | tuple) else [part] for part in parts]
            return next(filter(None, (_text_of(item) for row in rows for item in row)), "")
        if isinstance(function, types.FunctionType) and is_own_code(
            function.__code__.co_filename, function.__globals__
        ):
            return ""  # the called function is examined itself
        if any(function is item for item in _BY_KEY):
            return _order_of(given[0], known=not self._sets) if len(given) > 1 else ""
        if any(function is item for item in _BY_ELEMENTS) or isinstance(owner, set | frozenset | dict):
            return ""
        known = not self._sets or not _iterates(function, owner)
        return next(filter(None, (_order_of(item, known=known) for item in given)), "")

    def _top(self, depth: int = 1) -> Any:
        return self._items[-depth] if depth <= len(self._items) else _Unknown()

    def _pop(self, count: int = 1) -> list[Any]:
        missing = [_Unknown() for _ in range(count - len(self._items))]
        taken = [*missing, *self._items[len(self._items) - min(count, len(self._items)) :]]
        del self._items[len(self._items) - min(count, len(self._items)) :]
        return taken

    def _take_call(self, step: Step) -> tuple[Any, list[Any]]:
        if step.name == "CALL_KW":
            self._pop()  # the names of arguments
        given = self._pop(step.count)
        two = [item for item in self._pop(2) if item is not _NULL]
        if len(two) == 2:  # a bound method and its object
            two = two[:1]
        return two[0] if two else _Unknown(), given

    def _run(self, step: Step) -> None:
        """Simulate one instruction; its result is unknown if computing it could have side effects."""
        name, word = step.name, step.value
        frame = self._frame
        if name == "LOAD_CONST":
            self._items.append(word)
        elif name in ("LOAD_FAST", "LOAD_DEREF"):
            self._items.append(frame.f_locals.get(word, _Unknown()))
        elif name == "LOAD_GLOBAL":
            known = frame.f_globals.get(word, vars(builtins).get(word, _Unknown()))
            null = [_NULL] if step.is_method else []
            self._items += [known, *null] if step.printed.endswith("NULL") else [*null, known]
        elif name == "PUSH_NULL":
            self._items.append(_NULL)
        elif name == "LOAD_ATTR":
            (owner,) = self._pop()
            self._items += [_part_of(owner, str(word)), *([_NULL] if step.is_method else [])]
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.printed == "[]"):
            owner, key = self._pop(2)
            self._items.append(_entry_of(owner, key))
        elif name == "BINARY_OP":
            self._items.append(_result_of(step.printed.rstrip("="), *self._pop(2)))
        elif name in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET"):
            parts = self._pop(step.count)
            self._items.append(_collect(name, parts))
        elif name == "BUILD_SLICE":
            bounds = self._pop(step.count)
            self._items.append(_Unknown() if any(isinstance(item, _Unknown) for item in bounds) else slice(*bounds))
        elif name == "BINARY_SLICE":
            owner, *bounds = self._pop(3)
            unknown = any(isinstance(item, _Unknown) for item in bounds)
            self._items.append(_Unknown() if unknown else _entry_of(owner, slice(*bounds)))
        elif name in ("COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT", "UNARY_NEGATIVE"):
            self._pop(1 + (not name.startswith("UNARY")))
            self._items.append(_Unknown(is_set=False))  # of sets it is a boolean
        elif name in ("BUILD_MAP", "BUILD_CONST_KEY_MAP"):
            self._pop(2 * step.count if name == "BUILD_MAP" else step.count + 1)
            self._items.append(_Unknown(is_set=False))
        elif name == "LIST_EXTEND":
            self._pop(2)
            self._items.append(_Unknown(is_set=False))
        elif name == "SET_UPDATE":
            more, whole = self._pop()[0], self._pop()[0]
            known = isinstance(whole, set) and isinstance(more, set | frozenset | list | tuple)
            self._items.append(whole.union(more) if known else _Unknown(is_set=True))
        elif name in ("BUILD_STRING", *_FORMATTING):
            with_spec = name == "FORMAT_WITH_SPEC" or (name == "FORMAT_VALUE" and step.count & 4)
            self._pop(step.count if name == "BUILD_STRING" else 1 + bool(with_spec))
            self._items.append("")  # its parts have been examined
        elif name in ("CALL", "CALL_KW"):
            function, given = self._take_call(step)
            self._items.append(_answer_of(function, given))
        elif name == "MAKE_FUNCTION":
            made = self._pop(1 + bin(step.count).count("1"))[-1]
            self._items.append(_Unknown(gives=_gives_a_set(made)))
        elif name == "GET_ITER":
            pass  # an iterator is represented by the object that it iterates over
        else:
            self._other(step)

    def _other(self, step: Step) -> None:
        try:
            effect = dis.stack_effect(step.opcode, step.count if step.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        except ValueError:
            effect = -len(self._items)
        kept = max(0, len(self._items) + effect) if step.name in ("POP_TOP", "STORE_FAST") else 0
        self._items = self._items[:kept]


def _iterates(function: Any, owner: Any) -> bool:
    """Whether a function that is not the author's may iterate over its arguments."""
    if any(function is item for item in _ITERATING_ONE) or isinstance(owner, str):
        return True
    module = str(getattr(function, "__module__", None) or "builtins").partition(".")[0]
    return isinstance(function, _Unknown) or (module not in _ELEMENTWISE and not isinstance(function, torch.nn.Module))


def _gives_a_set(made: Any) -> bool | None:
    """Whether a function that code makes returns a set; comprehensions say so by their names."""
    names = {"<setcomp>": True, "<listcomp>": False, "<dictcomp>": False, "<genexpr>": False}
    return names.get(getattr(made, "co_name", ""))


def _text_of(item: Any) -> str:
    """The part of a value's string that differs between processes; "" if there is none."""
    if isinstance(item, _Unknown):
        return "the text of an object (which may contain an address)"
    if isinstance(item, torch.Tensor | str | int | float):
        return ""
    if is_unordered(item):
        return _order_of(item)
    try:
        text = f"{item} {item!r}"
    except Exception:  # its conversion to a string raises
        return f"the text of a {type(item).__name__}"
    return f"the address of a {type(item).__name__} in its text" if _ADDRESS in text else ""


def _order_of(item: Any, *, known: bool = False) -> str:
    """The set order on which iteration depends; "" if there is none, or if `known` and this is uncertain."""
    if isinstance(item, _Unknown):
        if item.is_set is None and not known:
            return "the order of something that may be a set"
        return "the order of a set" if item.is_set else ""
    return "the order of a set with elements that are not numbers" if is_unordered(item) else ""


def _part_of(owner: Any, word: str) -> Any:
    if isinstance(owner, _Unknown):
        if word in ("format", "join"):
            return "".format if word == "format" else "".join
        return _Unknown()
    try:
        return getattr(owner, word)
    except Exception:  # a property that raises
        return _Unknown()


def _entry_of(owner: Any, key: Any) -> Any:
    if isinstance(owner, _Unknown | torch.Tensor) or isinstance(key, _Unknown):
        return _Unknown()
    try:
        return owner[key]
    except Exception:  # there is no such entry
        return _Unknown()


def _result_of(sign: str, left: Any, right: Any) -> Any:
    """The result of an operator on two numbers, strings or sets."""
    of_sets = any(isinstance(item, set | frozenset) or getattr(item, "is_set", False) for item in (left, right))
    if isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        return {"|": left.union, "&": left.intersection, "-": left.difference}.get(sign, left.union)(right)
    if of_sets:
        return _Unknown(is_set=True)
    numbers = all(isinstance(item, int | float) for item in (left, right))
    return 0 if numbers else "" if isinstance(left, str) else _Unknown()


def _collect(name: str, parts: list[Any]) -> Any:
    if name == "BUILD_TUPLE":
        return tuple(parts)
    if name == "BUILD_LIST":
        return parts
    try:
        return _Unknown(is_set=True) if any(isinstance(part, _Unknown) for part in parts) else set(parts)
    except TypeError:
        return _Unknown(is_set=True)


def _answer_of(function: Any, given: list[Any]) -> Any:
    """The result of a call, or a placeholder: a number or string if the type is certain, otherwise unknown."""
    unknown = any(isinstance(item, _Unknown | torch.Tensor) for item in given)
    if any(function is item for item in (len, int, float, bool, abs, round)) and unknown:
        return 0
    if any(function is item for item in (str, repr, ascii, format)) or isinstance(
        getattr(function, "__self__", None), str
    ):
        return ""
    if isinstance(function, _Unknown):
        return _Unknown(is_set=function.gives)
    owner = getattr(function, "__self__", None)
    of_set = isinstance(owner, set | frozenset)
    pure = any(function is item for item in _PURE)
    pure = pure or (of_set and function.__name__ in ("union", "difference", "intersection", "copy"))
    if not pure or unknown:
        if function in (set, frozenset) or of_set:
            return _Unknown(is_set=True)
        ordered = any(function is item for item in _GIVING_NO_SET) or inspect.isgeneratorfunction(function)
        return _Unknown(is_set=False if ordered or isinstance(owner, str | list | tuple | dict) else None)
    try:
        return function(*given)
    except Exception:  # the real call raises too
        return _Unknown()
