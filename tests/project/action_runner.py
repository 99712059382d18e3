"""Runs a composite GitHub action as the service does, as far as its expressions go that ours uses.

Steps run in order with `bash --noprofile --norc -eo pipefail`, in the folder that they name, with the files for outputs
and summary. After a failed step only steps whose condition says `always()` run. `uses` steps are noted, not run.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Outcome:
    """What one run of an action left: exit code, printed lines, outputs, and the foreign actions that it called."""

    code: int = 0
    printed: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    called: list[tuple[str, dict[str, str]]] = field(default_factory=list)


class Contexts:
    """The values that `inputs.x`, `github.x` and `steps.id.outputs.x` stand for."""

    def __init__(self, inputs: Mapping[str, str], github: Mapping[str, str]) -> None:
        self.values = {f"inputs.{name}": value for name, value in inputs.items()}
        self.values |= {f"github.{name}": value for name, value in github.items()}

    def text(self, template: str) -> str:
        """A text with its expressions filled in; KeyError for what does not exist (the service would say nothing)."""
        return _EXPRESSION.sub(lambda match: self.values[match[1]], template)

    def holds(self, condition: str | None, failed: bool) -> bool:
        """Whether a step runs: `a && b` of `always()` and `name != 'text'`; without `always()` only after success."""
        words = [] if condition is None else [word.strip() for word in _EXPRESSION.sub(r"\1", condition).split("&&")]
        if failed and "always()" not in words:
            return False
        for word in words:
            if word != "always()":
                name, text = re.fullmatch(r"([\w.-]+) != '(.*)'", word).groups()
                if self.values[name] == text:
                    return False
        return True


def run_action(
    action: Mapping[str, Any], folder: Path, given: Mapping[str, str], path: list[Path], action_path: str
) -> Outcome:
    """Run the steps of an action in a checked-out folder, with inputs as `with:` gives them."""
    unknown = set(given) - set(action["inputs"])
    if unknown:
        raise KeyError(f"the action has no inputs {sorted(unknown)}")
    contexts = Contexts(
        {name: given.get(name, item["default"]) for name, item in action["inputs"].items()},
        {"action_path": action_path},
    )
    files = {"GITHUB_OUTPUT": folder.parent / "output", "GITHUB_STEP_SUMMARY": folder.parent / "summary.md"}
    environment = os.environ | {name: str(file) for name, file in files.items()}
    environment["PATH"] = os.pathsep.join([*map(str, path), os.environ["PATH"]])
    outcome = Outcome()
    for step in action["runs"]["steps"]:
        if not contexts.holds(step.get("if"), failed=outcome.code != 0):
            continue
        if "uses" in step:
            outcome.called.append((step["uses"], {name: contexts.text(text) for name, text in step["with"].items()}))
            continue
        assert step["shell"] == "bash"  # composite actions must name the shell
        files["GITHUB_OUTPUT"].write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", contexts.text(step["run"])],
            cwd=folder / contexts.text(step.get("working-directory", ".")),
            env=environment | {name: contexts.text(text) for name, text in step.get("env", {}).items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        outcome.printed += done.stdout
        outcome.code = outcome.code or done.returncode
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            contexts.values[f"steps.{step['id']}.outputs.{name}"] = value
    steps = {step["id"] for step in action["runs"]["steps"] if "id" in step}
    for name in _EXPRESSION.findall(str(action["outputs"])):
        if name.split(".")[:2] in [["steps", step] for step in steps]:
            contexts.values.setdefault(name, "")  # an output of a step that never ran is empty
    outcome.outputs = {name: contexts.text(item["value"]) for name, item in action["outputs"].items()}
    return outcome
