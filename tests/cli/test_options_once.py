"""An option is declared once: command line, settings, Python signatures and replay are derived from its field."""

import ast
import dataclasses
import inspect
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import symcheck
from symcheck.api.commands import from_command, options_that_differ, to_command
from symcheck.api.options import VerifyEnvKeywords, VerifyEnvOptions, VerifyNetKeywords, VerifyNetOptions
from symcheck.cli import settings as settings_files
from symcheck.cli.derive import values_of, with_options
from symcheck.cli.main import app
from symcheck.cli.outputs import Outputs
from symcheck.discovery.options import DiscoverKeywords, DiscoverOptions
from symcheck.engine.option_fields import from_keywords, from_texts, option, option_fields, typed_fields

KEYWORDS = [
    (VerifyEnvOptions, VerifyEnvKeywords),
    (VerifyNetOptions, VerifyNetKeywords),
    (DiscoverOptions, DiscoverKeywords),
]
COMMANDS = [("verify-env", VerifyEnvOptions), ("verify-net", VerifyNetOptions), ("discover", DiscoverOptions)]


@pytest.mark.parametrize(("kind", "keywords"), KEYWORDS)
def test_the_keywords_for_static_checkers_are_the_fields(kind, keywords):
    assert set(keywords.__annotations__) == {field.name for field in option_fields(kind)}


@pytest.mark.parametrize(("name", "kind"), COMMANDS)
def test_every_field_is_on_the_command_line_with_its_help(name, kind):
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "240"}).output
    shown = " ".join(shown.replace("│", " ").split())
    for field in typed_fields(kind):
        assert f"{field.flag} " in shown
        assert field.help[:30] in shown
        assert field.help[0].isupper()
        assert field.help.endswith(".")


@pytest.mark.parametrize(
    ("function", "kind"), [(symcheck.verify_env, VerifyEnvOptions), (symcheck.verify_net, VerifyNetOptions)]
)
def test_the_python_signature_shows_every_option_with_its_default(function, kind):
    parameters = inspect.signature(function).parameters
    for field in option_fields(kind):
        assert parameters[field.name].default == field.default
        assert parameters[field.name].kind is inspect.Parameter.KEYWORD_ONLY


def test_an_unknown_keyword_is_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"verify_env\(\) got an unexpected keyword argument 'sample'.*samples"):
        symcheck.verify_env("CartPole-v1", sample=3)


def test_settings_know_every_option_of_a_check():
    assert set(settings_files.CHECK["env"]) == {"symmetry"} | {f.setting for f in typed_fields(VerifyEnvOptions)}
    assert "pytest" not in settings_files.CHECK["net"]
    assert {"samples", "max-time", "alpha", "seed", "baseline", "html", "json", "quiet"} <= set(settings_files.SHARED)
    assert "method" not in settings_files.SHARED


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "samples": st.integers(1, 10**6),
            "max_time": st.floats(0.01, 1e6),
            "alpha": st.floats(1e-6, 0.9),
            "seed": st.integers(0, 2**31),
            "method": st.sampled_from(["auto", "exact", "paired", "distribution", "trajectory"]),
            "discount": st.floats(0, 0.999),
            "accept_gap": st.floats(0, 1e6),
            "env_kwargs": st.dictionaries(TEXTS, st.one_of(st.integers(-9, 9), TEXTS), min_size=1, max_size=3),
        },
    )
)
def test_a_command_line_gives_its_options_back(values):
    options = VerifyEnvOptions(**values)
    line = to_command("verify-env", "CartPole-v1", options_that_differ(options, VerifyEnvOptions()))
    assert from_texts(VerifyEnvOptions, from_command(line, where="test").options) == options


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "input_shape": st.lists(st.integers(1, 99), min_size=1, max_size=4).map(tuple),
            "outputs": st.lists(st.sampled_from(["action", "invariant"]), min_size=1, max_size=3).map(tuple),
            "strict": st.booleans(),
            "noise_seed": st.integers(0, 99),
            "trust": st.booleans(),
            "dtype": st.sampled_from(["float32", "float64"]),
            "checkpoint": st.just(Path("weights.pt")),
        },
    )
)
def test_a_command_line_of_a_network_gives_its_options_back(values):
    options = VerifyNetOptions(**values)
    line = to_command("verify-net", "net.py:f", options_that_differ(options, VerifyNetOptions()))
    assert from_texts(VerifyNetOptions, from_command(line, where="test").options) == options


def test_a_new_field_is_a_parameter_of_the_command_and_reaches_it():
    @dataclasses.dataclass(frozen=True)
    class Planted:
        grid: int = option(5, "Points of the grid.", kind=int)
        fast: bool = option(False, "Skip the rest.", kind=bool)

    received = {}

    @with_options(Planted, Outputs, leave_out=("junit",))
    def command(**given):
        received.update(values_of(Planted, given), junit="junit" in given)

    import typer

    tried = typer.Typer()
    tried.command()(command)
    assert CliRunner().invoke(tried, ["--grid", "7", "--fast"]).exit_code == 0
    assert received == {"grid": 7, "fast": True, "junit": False}
    assert CliRunner().invoke(tried, ["--grid", "seven"]).exit_code == 2


ROOT = Path(__file__).parents[2]


def unread_options(kind, texts):
    """The options of a dataclass that no module reads as an attribute."""
    return [field.name for field in option_fields(kind) if not any(_reads(text, field.name) for text in texts)]


def _reads(text, name):
    """Whether a module reads an attribute; its syntax is looked at only where its text has the name after a dot."""
    if f".{name}" not in text:
        return False
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(ast.parse(text)))


@pytest.fixture(scope="module")
def texts():
    """Every module but those that declare options: these read them too, to check them, which is no use of an option."""
    files = [path for path in (ROOT / "symcheck").rglob("*.py") if path.name != "options.py"]
    return [path.read_text(encoding="utf-8") for path in files]


@pytest.mark.parametrize("kind", [VerifyEnvOptions, VerifyNetOptions, DiscoverOptions])
def test_no_option_is_declared_and_left_unread(kind, texts):
    assert unread_options(kind, texts) == []


def test_an_option_that_nothing_reads_is_caught():
    @dataclasses.dataclass(frozen=True)
    class Planted:
        grid: int = option(5, "Points of the grid.", kind=int)
        fast: bool = option(False, "Skip the rest.", kind=bool)

    assert unread_options(Planted, ["if options.fast: stop()", "# options.grid"]) == ["grid"]


def test_none_means_the_default_only_where_it_is_no_value_of_its_own():
    assert from_keywords(VerifyEnvOptions, {"samples": None, "accept_gap": None}, caller="f") == VerifyEnvOptions()
