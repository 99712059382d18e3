"""Verdicts are the same whichever kernels the processor's linear algebra takes, on one thread and on two."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import kernels
from kernels import Kernel

ROOT = Path(__file__).parents[2]
FOLDERS = ["tests/kernels", "tests/defects/networks", "tests/defects/environments", "tests/networks", "."]
# Some builds of OpenBLAS have no kernels of their own for Zen and Prescott; they name those that they take instead.
ALIASES = {"Zen": {"Zen", "Haswell"}, "Prescott": {"Prescott", "Katmai"}}
CHOICES = [(kernel, 1) for kernel in [*kernels.runnable(kernels.PAIRS), *kernels.runnable(kernels.CROSSED)]]
CHOICES += [(kernel, 2) for kernel in kernels.runnable(kernels.PAIRS)[:1]]


def verdicts(kernel: Kernel, threads: int) -> dict:
    """What a child process that takes these kernels says of every subject."""
    paths = [*(str(ROOT / folder) for folder in FOLDERS), os.environ.get("PYTHONPATH", "")]
    environment = (
        os.environ | kernel.variables | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(paths)}
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__).parent / "print_verdicts.py")],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return dict(json.loads(done.stdout))


@cache
def expected() -> dict:
    """The verdicts under the plainest kernels, which every processor runs."""
    return verdicts(kernels.PAIRS[-1], 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "threads"), CHOICES, ids=[f"{kernel.name}, {threads} threads" for kernel, threads in CHOICES]
)
def test_verdicts_do_not_depend_on_kernels(kernel: Kernel, threads: int) -> None:
    given = verdicts(kernel, threads)
    core, capability = given.pop("kernels")
    assert core in ALIASES.get(kernel.core, {kernel.core}) | {"unknown"}
    assert capability.lower() == kernel.capability
    plainest = {part: subjects for part, subjects in expected().items() if part != "kernels"}
    for part, subjects in plainest.items():
        assert given[part] == subjects


@pytest.mark.slow
@pytest.mark.parametrize("part", ["networks", "worlds"])
def test_the_subjects_are_proved_passed_and_failed(part: str) -> None:
    found = {verdict for one in expected()[part].values() for verdict in one.values() if isinstance(verdict, str)}
    assert {"proved", "passed", "failed"} <= found


def test_the_pair_tested_beside_the_processors_own_is_another_one() -> None:
    own = kernels.runnable(kernels.PAIRS)[0]
    assert kernels.other() != own or kernels.runnable(kernels.PAIRS) == [own]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (kernels.AVX512, ["SkylakeX+avx512", "Haswell+avx2", "Zen+avx2", "Prescott+default"]),
        (kernels.AVX2, ["Haswell+avx2", "Zen+avx2", "Prescott+default"]),
        (frozenset({"sse4_2"}), ["Prescott+default"]),
    ],
)
def test_no_kernel_is_taken_that_the_processor_cannot_run(monkeypatch, flags, names) -> None:
    monkeypatch.setattr(kernels, "processor_flags", lambda: flags)
    assert [kernel.name for kernel in kernels.runnable(kernels.PAIRS)] == names
