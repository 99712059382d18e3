"""Whatever is typed or written into a SPEC: no traceback, one message, exit code 2 where it cannot be used."""

import sys
from pathlib import Path

import pytest
import tomlkit
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symcheck.cli.main import app

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from commands import run

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
COMMANDS = typer.main.get_command(app).commands


def options(command: str) -> list[str]:
    """What a command takes, but for --check (it verifies the whole atlas again) and --max-time (kept at a second)."""
    names = {name for parameter in COMMANDS[command].params for name in parameter.opts if name[0] == "-"}
    return sorted(names - {"--check", "--max-time"})


texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "-1", "0", "1e9", "nan", "inf", "1e400", "{", "[]", "null", "no/such/file", "a:b:c", "file.py:", ":x"]
    ),
    st.sampled_from(["CartPole-v1", "cartpole/mirror", "C2", "spec.toml", "auto", "cpu", "float64", "1,4"]),
)
numbers = st.one_of(st.integers(-3, 5), st.floats(-2, 2), st.sampled_from([2**62, -(2**62), 1e308, float("nan")]))
scalars = st.one_of(numbers, texts, st.booleans())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text("abcsignoffet", min_size=1), inner, max_size=3),
    max_leaves=12,
)
fields = st.sampled_from(["name", "group", "observation", "action", "state", "initial", "claim", "blocks", "extra"])
sound = {"name": "mirror", "group": "C2", "observation": [[-1, -1, -1, -1]], "action": [[1, 0]]}


def is_one_message(code: int, output: str) -> bool:
    """Verdicts print reports; what cannot be used prints one message of ours, or typer's own usage error."""
    if code in (0, 1, 3):
        return True
    return code == 2 and output.count("symcheck: ") + output.count("─ Error ─") == 1 and "Traceback" not in output


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """A folder for whatever the commands write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fuzz"))
        yield


def check_spec(changes: dict[str, object], left_out: str | None) -> None:
    spec = {key: value for key, value in (sound | changes).items() if key != left_out}
    Path("spec.toml").write_text(tomlkit.dumps(spec))
    code, output = run("verify-env", "CartPole-v1", "--symmetry", "spec.toml", "--samples", "20")
    assert is_one_message(code, output), output
    if left_out in sound and left_out not in ("name",):
        assert code == 2, output


def check_words(words: list[str]) -> None:

    code, output = run(*words)
    assert is_one_message(code, output), output


specs = given(st.dictionaries(fields, values, min_size=1, max_size=2), st.none() | st.sampled_from(sorted(sound)))
targets = st.one_of(texts, st.sampled_from(["CartPole-v1", "cartpole/mirror", "spec.toml", "SYM014", "."]))


@st.composite
def typed(draw):
    """A command, perhaps a target, and up to three options with what may be their values."""
    command = draw(
        st.sampled_from(["verify-env", "verify-net", "explain", "report", "basis", "replay", "atlas", "run"])
    )
    words = [command, *draw(st.lists(targets, max_size=1))]
    for option in draw(st.lists(st.sampled_from(options(command) or ["--none"]), max_size=3, unique=True)):
        words += [option, *draw(st.lists(texts, max_size=1))]
    return words + (["--max-time", "1"] if command.startswith("verify") else [])


@specs
@QUICK
def test_no_field_of_a_spec_gives_a_traceback(changes, left_out):
    check_spec(changes, left_out)


@given(typed())
@QUICK
def test_no_typed_words_give_a_traceback(words):
    check_words(words)


@pytest.mark.slow
@specs
@LONG
def test_no_field_of_a_spec_gives_a_traceback_in_many_tries(changes, left_out):
    check_spec(changes, left_out)


@pytest.mark.slow
@given(typed())
@LONG
def test_no_typed_words_give_a_traceback_in_many_tries(words):
    check_words(words)
