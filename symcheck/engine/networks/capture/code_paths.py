"""The instructions of the network's own code that run in a call, for comparing two calls.

A graph shows the computation during the capture. Code that detects the capture, by the type of a tensor or of a size,
executes other instructions in a plain call.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symcheck.engine.networks.capture.call_effects import collection_paused
from symcheck.engine.networks.capture.own_code import is_importing, is_own_code

LONGEST = 2_000_000
"""Maximum number of instructions recorded in one call: some ten megabytes, a second."""


@dataclass
class CodePath:
    """The instructions executed by the network's own code, in order.

    Attributes:
        steps: pairs of a code object and the offset of an instruction in it.
        complete: whether all instructions were recorded, below the limit.
    """

    steps: list[tuple[types.CodeType, int]] = field(default_factory=list)
    complete: bool = True

    def where_it_leaves(self, other: CodePath) -> str | None:
        """File and line of the last common instruction before two paths diverge; None if they do not."""
        if self.steps == other.steps and self.complete and other.complete:
            return None
        pairs = enumerate(zip(self.steps, other.steps, strict=False))
        first = next((k for k, (mine, others) in pairs if mine != others), min(len(self.steps), len(other.steps)))
        if not first:
            return ""
        code, offset = self.steps[first - 1]
        line = next((line for start, end, line in code.co_lines() if start <= offset < end), code.co_firstlineno)
        return f"{Path(code.co_filename).name}:{line}"


@contextmanager
def path_taken(path: CodePath) -> Iterator[None]:
    """Record the instructions of the network's own code while active."""
    steps = path.steps
    kinds: dict[types.CodeType, bool] = {}
    outermost = sys._getframe(2)

    def enter(frame: types.FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        if code not in kinds:
            kinds[code] = is_own_code(code.co_filename, frame.f_globals)
        if not kinds[code] or is_importing(frame, outermost):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return follow

    def follow(frame: types.FrameType, event: str, _argument: Any) -> Any:
        if event == "opcode":
            if len(steps) < LONGEST:
                steps.append((frame.f_code, frame.f_lasti))
            else:
                path.complete = False
        return follow

    before = sys.gettrace()
    with collection_paused():
        sys.settrace(enter)
        try:
            yield
        finally:
            sys.settrace(before)
