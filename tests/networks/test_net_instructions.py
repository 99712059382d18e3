"""Readers of code see one form of instructions for all versions of Python, and refuse what they do not know."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from symcheck.engine.networks.capture import gate, instructions, library_settings
from symcheck.engine.networks.capture.instructions import UnknownInstructionError, steps_from
from symcheck.engine.networks.subject.values import Opaque


def instruction(name: str, value: Any = None, *, text: str = "") -> Any:
    """An instruction as `dis` gives it, of any version."""
    return types.SimpleNamespace(
        opname=name, opcode=0, arg=0, argval=value, argrepr=text or str(value), offset=0, is_jump_target=False
    )


def forms(*given: Any) -> list[tuple[str, Any]]:
    return [(step.name, step.value) for step in steps_from(given)]


def test_joined_instructions_are_read_as_two() -> None:
    assert forms(instruction("LOAD_FAST_BORROW_LOAD_FAST_BORROW", ("a", "b"))) == [
        ("LOAD_FAST", "a"),
        ("LOAD_FAST", "b"),
    ]
    assert forms(instruction("STORE_FAST_LOAD_FAST", ("a", "b"))) == [("STORE_FAST", "a"), ("LOAD_FAST", "b")]
    assert forms(instruction("STORE_FAST_STORE_FAST", ("a", "b"))) == [("STORE_FAST", "a"), ("STORE_FAST", "b")]


def test_one_instruction_has_one_name_in_every_version() -> None:
    new = [instruction("RESUME"), instruction("LOAD_SMALL_INT", 3), instruction("LOAD_FAST_CHECK", "x")]
    assert forms(*new, instruction("NOT_TAKEN")) == [("LOAD_CONST", 3), ("LOAD_FAST", "x")]
    target = instruction("PRECALL")
    target.is_jump_target = True
    assert [step.is_target for step in steps_from([target, instruction("CALL"), instruction("POP_TOP")])] == [
        True,
        False,
    ]
    calls = [instruction("LOAD_METHOD", "time"), instruction("LOAD_ATTR", "time", text="time + NULL|self")]
    assert [(step.name, step.is_method) for step in steps_from(calls)] == [("LOAD_ATTR", True)] * 2
    (handed_on,) = steps_from([instruction("LOAD_ATTR", "time")])
    assert not handed_on.is_method


@pytest.mark.parametrize("name", ["BUILD_TEMPLATE", "LOAD_FAST_LOAD_GLOBAL"])
def test_an_unknown_instruction_is_named(name: str) -> None:
    with pytest.raises(UnknownInstructionError) as raised:
        forms(instruction("LOAD_CONST", 1), instruction(name))
    assert raised.value.name == name


def test_a_setting_is_followed_through_joined_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*given: Any) -> str:
        monkeypatch.setattr(library_settings, "steps_of", lambda code: tuple(steps_from(given)))
        reader = library_settings._Reader({"torch": torch}, {}, library_settings._Library(), set())
        return reader.read_by((lambda: 0).__code__)

    start = [instruction("LOAD_GLOBAL", "torch"), instruction("LOAD_ATTR", "_tensor_str")]
    end = instruction("LOAD_ATTR", "PRINT_OPTS")
    assert read(*start, instruction("STORE_FAST_LOAD_FAST", ("kept", "kept")), end) == "kept.PRINT_OPTS"
    other = instruction("STORE_FAST_LOAD_FAST", ("kept", "other"))
    assert read(*start, other, instruction("LOAD_FAST_LOAD_FAST", ("other", "kept")), end) == "kept.PRINT_OPTS"
    assert read(*start, other, end) == ""


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        # a string that no other code of the tests has: instructions are kept by code
        assert x.dtype, "instructions that nobody knows"
        return self.linear(x) + x[:, :1]  # type: ignore[no-any-return]


def test_a_network_with_an_unknown_instruction_is_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "_KNOWN", instructions._KNOWN - {"BINARY_OP"})
    captured = gate.capture_every_call(Plain().double(), None, (4,), 0, alone=False)
    instructions.steps_of.cache_clear()
    assert isinstance(captured, Opaque)
    assert (captured.reason.code, captured.reason.fields["instruction"]) == ("SYM177", "BINARY_OP")
