"""The instructions of Python code, in one form for all versions of Python.

Versions of Python differ in the names of instructions, and some versions merge two instructions into one. Here, every
instruction is a single load or store. Code with an instruction that is not listed here cannot be read, which ends a
proof.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_SKIPPED_NAMES = (
    "CACHE PRECALL NOP RESUME EXTENDED_ARG MAKE_CELL COPY_FREE_VARS KW_NAMES NOT_TAKEN TO_BOOL INTERPRETER_EXIT"
)
_SKIPPED = frozenset(_SKIPPED_NAMES.split())
"""Instructions that neither read nor write what a program can see."""
_RENAMED = {
    **dict.fromkeys(["LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR"], "LOAD_FAST"),
    **dict.fromkeys(["LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"], "LOAD_DEREF"),
    **dict.fromkeys(["LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"], "LOAD_GLOBAL"),
    "LOAD_SMALL_INT": "LOAD_CONST",
    "LOAD_METHOD": "LOAD_ATTR",
    "STORE_FAST_MAYBE_NULL": "STORE_FAST",
}
_JOINED = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
_KNOWN_NAMES = """
ASYNC_GEN_WRAP BEFORE_ASYNC_WITH BEFORE_WITH BINARY_OP BINARY_SLICE BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST
BUILD_MAP BUILD_SET BUILD_SLICE BUILD_STRING BUILD_TUPLE CALL CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_INTRINSIC_2 CALL_KW
CHECK_EG_MATCH CHECK_EXC_MATCH CLEANUP_THROW COMPARE_OP CONTAINS_OP CONVERT_VALUE COPY DELETE_ATTR DELETE_DEREF
DELETE_FAST DELETE_GLOBAL DELETE_NAME DELETE_SUBSCR DICT_MERGE DICT_UPDATE END_ASYNC_FOR END_FOR END_SEND
EXIT_INIT_CHECK FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GET_AITER GET_ANEXT GET_AWAITABLE GET_ITER GET_LEN
GET_YIELD_FROM_ITER IMPORT_FROM IMPORT_NAME IMPORT_STAR IS_OP JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD
JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP LIST_APPEND LIST_EXTEND LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_ATTR
LOAD_BUILD_CLASS LOAD_CLOSURE LOAD_COMMON_CONSTANT LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_GLOBAL LOAD_LOCALS LOAD_SPECIAL
LOAD_SUPER_ATTR MAKE_FUNCTION MAP_ADD MATCH_CLASS MATCH_KEYS MATCH_MAPPING MATCH_SEQUENCE POP_EXCEPT POP_ITER
POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE
POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE
POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP PREP_RERAISE_STAR PRINT_EXPR
PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE RETURN_CONST RETURN_GENERATOR RETURN_VALUE SEND SETUP_ANNOTATIONS SET_ADD
SET_FUNCTION_ATTRIBUTE SET_UPDATE STORE_ATTR STORE_DEREF STORE_FAST STORE_GLOBAL STORE_NAME STORE_SLICE STORE_SUBSCR
SWAP UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_EX UNPACK_SEQUENCE WITH_EXCEPT_START YIELD_VALUE
"""
_KNOWN = frozenset(_KNOWN_NAMES.split())
"""The instructions of Python 3.11 to 3.14, apart from templates, under the names above."""


class UnknownInstructionError(Exception):
    """Code contains an instruction that is not listed.

    Attributes:
        name: its name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


@dataclass(frozen=True)
class Step:
    """One instruction.

    Attributes:
        name: its name, as in Python 3.11.
        value: its argument resolved: a name, a constant.
        count: its argument as a number.
        printed: its argument as `dis` prints it.
        offset: its place in the code.
        opcode: its number in this version of Python.
        is_target: whether a jump may lead to it.
        is_method: whether the loaded attribute is called as a method.
    """

    name: str
    value: Any = None
    count: int = 0
    printed: str = ""
    offset: int = 0
    opcode: int = 0
    is_target: bool = False
    is_method: bool = False


@functools.cache
def steps_of(code: types.CodeType) -> tuple[Step, ...]:
    """The instructions of a function, one load or store each.

    Raises:
        UnknownInstructionError: an instruction is not listed here.
    """
    return tuple(steps_from(dis.get_instructions(code)))


def steps_from(instructions: Iterable[Any]) -> Iterator[Step]:
    """Instructions as `dis` gives them, one load or store each.

    Raises:
        UnknownInstructionError: an instruction is not listed here.
    """
    reached = False  # whether a jump leads to an instruction that was skipped just before
    for item in instructions:
        reached = reached or item.is_jump_target
        if item.opname in _SKIPPED:
            continue
        joined = _JOINED.get(item.opname)
        names = joined or (_RENAMED.get(item.opname, item.opname),)
        called = item.opname == "LOAD_METHOD" or "NULL" in item.argrepr
        for place, name in enumerate(names):
            if name not in _KNOWN:
                raise UnknownInstructionError(name)
            value = item.argval[place] if joined else item.argval
            target, reached = reached, False
            yield Step(name, value, item.arg or 0, item.argrepr, item.offset, item.opcode, target, called)
