"""TAB in a shell: commands, options, and values that have names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symcheck.cli import completion


def offered(*words: str) -> list[str]:
    """What bash offers for the last word, asked as its completion function asks."""
    environment = {
        "_SYMCHECK_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["symcheck", *words]),
        "COMP_CWORD": str(len(words)),
    }
    program = Path(sys.executable).parent / "symcheck"
    done = subprocess.run([program], env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_is_offered_commands_and_names():
    assert offered("ver") == ["verify-env", "verify-net", "verify-mirror", "verify-game"]
    assert offered("verify-net", "--symmetry", "cartp") == ["cartpole/mirror"]


def test_nothing_is_offered_where_a_file_is_meant():
    assert completion.symmetries("my_claim.to") == completion.environments("my_env.py:") == []


@pytest.mark.parametrize(
    ("values", "typed", "some"),
    [
        (completion.symmetries, "", "acrobot/mirror"),
        (completion.environments, "symcheck/Pred", "symcheck/PredatorPrey-v0"),
        (completion.atlas_subjects, "Walker", "Walker2d-v5"),
        (completion.codes, "SYM0", "SYM014"),
        (completion.methods, "", "trajectory"),
    ],
)
def test_values_begin_with_what_is_typed(values, typed, some):
    found = values(typed)
    assert some in found
    assert all(value.startswith(typed) for value in found)


def test_the_methods_offered_are_those_that_exist():
    from typing import get_args

    from symcheck.engine.options import Method

    assert set(completion.METHODS) == set(get_args(Method))
