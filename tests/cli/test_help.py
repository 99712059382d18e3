"""Every command explains itself: what it does, every option, an example."""

import pytest
import typer

from reference_agents.cli.app import app as agents
from symcheck.cli.main import app as symcheck

COMMANDS = [
    pytest.param(name, command, id=f"{program} {name}")
    for program, app in (("symcheck", symcheck), ("reference-agents", agents))
    for name, command in typer.main.get_command(app).commands.items()
]


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_a_command_has_an_example_that_names_it(name, command):
    assert "Example: " in command.help
    assert f" {name} " in command.help.partition("Example: ")[2] + " "


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_every_option_says_what_it_does(name, command):
    assert [option.name for option in command.params if not (getattr(option, "help", None) or "").strip()] == []
