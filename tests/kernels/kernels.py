"""The linear algebra of other processors, chosen by environment variables before NumPy and torch are loaded.

OpenBLAS (NumPy's and SciPy's) has a set of kernels per processor family; torch has three sets of vectorised loops. Sums
are ordered differently in each, so that results differ in their last places. `python tests/kernels/kernels.py` lists
the pairs that this processor can run, the newest first; `python tests/kernels/kernels.py other` names the pair to test
beside the processor's own.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

CPU_FLAGS = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Kernel:
    """One choice of kernels.

    Attributes:
        core: of OpenBLAS.
        capability: of torch's vectorised loops.
        needs: the processor's flags without which it would end at an illegal instruction.
    """

    core: str
    capability: str
    needs: frozenset[str]

    @property
    def name(self) -> str:
        """As tables call it."""
        return f"{self.core}+{self.capability}"

    @property
    def variables(self) -> dict[str, str]:
        """What a child process must find in its environment."""
        return {"OPENBLAS_CORETYPE": self.core, "ATEN_CPU_CAPABILITY": self.capability}


AVX2 = frozenset({"avx2", "fma"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
PAIRS = [
    Kernel("SkylakeX", "avx512", AVX512),
    Kernel("Haswell", "avx2", AVX2),
    Kernel("Zen", "avx2", AVX2),
    Kernel("Prescott", "default", frozenset()),
]
CROSSED = [
    Kernel("SkylakeX", "default", AVX512),
    Kernel("Haswell", "avx512", AVX512),
    Kernel("Prescott", "avx2", AVX2),
]


def processor_flags() -> frozenset[str]:
    """The instruction sets that the processor names; none where there is no list of them."""
    if not CPU_FLAGS.exists():
        return frozenset()
    lines = (line for line in CPU_FLAGS.read_text().splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").partition(":")[2].split())


def runnable(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels that this processor can run."""
    flags = processor_flags()
    return [kernel for kernel in kernels if kernel.needs <= flags]


def other() -> Kernel:
    """A kernel that is not the processor's own: one generation older than the newest that it can run."""
    return next((kernel for kernel in runnable(PAIRS)[1:]), PAIRS[-1])


def taken() -> tuple[str, str]:
    """The kernels in use in this process: OpenBLAS's own name for its core, and torch's capability."""
    import numpy
    import torch

    libraries = Path(numpy.__file__).parents[1] / "numpy.libs"
    for library in libraries.glob("*openblas*"):
        loaded = ctypes.CDLL(str(library))
        for symbol in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
            if hasattr(loaded, symbol):
                corename = getattr(loaded, symbol)
                corename.restype = ctypes.c_char_p
                return corename().decode(), torch.backends.cpu.get_cpu_capability()
    return "unknown", torch.backends.cpu.get_cpu_capability()


def main() -> None:
    """Print one kernel a line: its name and the variables that choose it."""
    for kernel in [other()] if sys.argv[1:] == ["other"] else runnable(PAIRS):
        words = [kernel.name, *(f"{name}={value}" for name, value in kernel.variables.items())]
        sys.stdout.write(" ".join(words) + "\n")


if __name__ == "__main__":
    main()
