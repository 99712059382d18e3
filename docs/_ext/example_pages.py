"""Example pages, written anew for every build by the commands that are shown beside them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "examples"
"""Folder of the pages in the built site."""

NO_ACTION_MAP = """\
name = "no action map"
group = "cyclic(2)"
observation = [[-1, -1, -1, -1]]
action = [[0, 1]]
"""


class Example(NamedTuple):
    """One page.

    Attributes:
        title: what the page shows.
        page: its file, written by the last command.
        commands: as a reader types them; they run in order.
    """

    title: str
    page: str
    commands: tuple[str, ...]


_TRAIN = (
    "reference-agents train cartpole --network {} --seeds 4 --steps 6000 --evaluation-every 1000 --quiet --out runs"
)
EXAMPLES = (
    Example(
        "A symmetry that holds: CartPole's mirror",
        "passed.html",
        ("symcheck verify-env CartPole-v1 --html passed.html",),
    ),
    Example(
        "A symmetry that fails: the same mirror without its action map",
        "failed.html",
        ("symcheck verify-env CartPole-v1 --symmetry no_action.toml --html failed.html",),
    ),
    Example(
        "A network that is proved equivariant",
        "proved.html",
        (
            "symcheck verify-net examples/cartpole_networks.py:equivariant --symmetry cartpole/mirror "
            "--html proved.html",
        ),
    ),
    Example(
        "A network with one wrong weight",
        "one_weight_off.html",
        (
            "symcheck verify-net examples/cartpole_networks.py:one_weight_off --symmetry cartpole/mirror "
            "--html one_weight_off.html",
        ),
    ),
    Example(
        "A search for symmetries",
        "discovered.html",
        ("symcheck discover symcheck/PredatorPrey-v0 --html discovered.html",),
    ),
    Example(
        "Learning curves of two networks, four short runs each",
        "curves.html",
        (_TRAIN.format("equivariant"), _TRAIN.format("mlp"), "reference-agents compare runs --out curves.html"),
    ),
)


def write_examples(app: Any, config: Any) -> None:
    """Run the commands; keep the pages, and the list of them that `examples.md` includes."""
    generated = Path(app.srcdir) / "_generated"
    pages = generated / "extra" / FOLDER
    pages.mkdir(parents=True, exist_ok=True)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copytree(ROOT / "examples", work / "examples")
        (work / "no_action.toml").write_text(NO_ACTION_MAP)
        for example in EXAMPLES:
            for command in example.commands:
                _run(command, work)
            shutil.copyfile(work / example.page, pages / example.page)
            # Raw HTML: a Markdown link to a file of another kind would become a download.
            lines += [f"## {example.title}", "", *_file_shown(example), "```sh", *example.commands, "```", ""]
            lines += [f'<a href="{FOLDER}/{example.page}">The page: {example.page}</a>', ""]
    (generated / "examples.md").write_text("\n".join(lines))


def _file_shown(example: Example) -> list[str]:
    if "no_action.toml" not in example.commands[0]:
        return []
    return ["`no_action.toml`:", "", "```toml", NO_ACTION_MAP.rstrip(), "```", ""]


def _run(command: str, folder: Path) -> None:
    program, *words = shlex.split(command)
    module = {"symcheck": "symcheck", "reference-agents": "reference_agents"}[program]
    done = subprocess.run([sys.executable, "-m", module, *words], cwd=folder, capture_output=True, text=True)
    # 1 is a claim that fails, which two of the pages are about.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def setup(app: Any) -> dict[str, bool]:
    """Run before Sphinx looks whether the folders named in `html_extra_path` exist."""
    app.connect("config-inited", write_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
