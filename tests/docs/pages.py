"""Pages whose blocks run: files are written, Python is executed and commands are typed, in the page's own order.

A block says what it is by its language and by a comment above it:

    <!-- file: NAME -->        the block is written to NAME, whatever its language
    <!-- not run: REASON -->   the block is shown only

`python` blocks of a page share their names. In `console` blocks the lines after `$ COMMAND` are its output; a line
`[...]` stands for any lines, `$ echo $?` shows the exit code (0 where it is not shown), durations may differ. A
residual within the tolerance printed beside it is rounding, whose digits are the processor's own: its size is compared.
Numbers with seven and more significant digits are float32 values; their last places are the processor's own as well.

`python tests/docs/pages.py PAGE...` writes the output of every command into the page, for a look at the difference.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>file|not run): (?P<text>.*?) -->\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.M | re.S
)
_PROGRESS = re.compile(r"^symcheck: still running: .*\n", re.M)
"""What a command says every few seconds; how often depends on how busy the machine is."""
_DURATION = re.compile(r"\b\d[\d.,]* ?(?:ms|s|min)\b")
_SIZE = r"\d[\d.]*(?:e[+-]\d+)?"
# A residual with its tolerance beside it, as in "largest residual 3.9e-16 (tolerance 1.0e-12)".
_RESIDUAL = re.compile(
    rf"(?P<before>\bresidual +)(?P<residual>{_SIZE})(?P<between>[^;]*?\btolerance )(?P<tolerance>{_SIZE})"
)
_VALUE = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")
VALUE_DIGITS = 7
SAME_VALUE = 4 * 2.0**-23
"""Four units of float32: initial weights come out of torch's vectorised sine and logarithm, each right to one unit."""
SAME_SIZE = 10.0
"""Rounding may leave up to so many times as much, or as little, with another order of the same sums."""
_NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]\d+)?")
ELISION = "[...]"


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    body: str
    line: int
    file: str | None
    runs: bool


@dataclass(frozen=True)
class Command:
    """One command of a console block, what the page says that it prints, and the exit code that it shows."""

    words: str
    shown: list[str]
    code: int


def blocks(text: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        note = match["note"]
        found.append(
            Block(
                language=match["language"],
                body=match["body"],
                line=text.count("\n", 0, match.start()) + 1,
                file=match["text"] if note == "file" else None,
                runs=note != "not run",
            )
        )
    return found


def commands(body: str) -> Iterator[Command]:
    """The commands of a console block; `$ echo $?` belongs to the command before it."""
    parts = re.split(r"^\$ ", body, flags=re.M)[1:]
    pairs = [part.partition("\n") for part in parts]
    for position, (words, _, output) in enumerate(pairs):
        if words == "echo $?":
            continue
        code = 0
        if position + 1 < len(pairs) and pairs[position + 1][0] == "echo $?":
            code = int(pairs[position + 1][2])
        yield Command(re.sub(r"\s+#.*$", "", words), output.splitlines(), code)


def typed(words: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command typed in a folder, and all that it printed."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        ["bash", "-c", words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, _PROGRESS.sub("", done.stdout.decode())


@dataclass(frozen=True)
class Line:
    """A line of output without what may differ, and the residuals and the values that were taken out of it."""

    text: str
    residuals: tuple[float, ...]
    values: tuple[float, ...]

    def agrees(self, other: Line) -> bool:
        """Whether the texts are the same, the residuals of the same size and the values within float32's rounding."""
        return (
            self.text == other.text
            and all(map(_same_size, self.residuals, other.residuals))
            and all(map(_same_value, self.values, other.values))
        )


def _same_size(first: float, second: float) -> bool:
    if first == 0 or second == 0:
        return first == second
    return 1 / SAME_SIZE <= first / second <= SAME_SIZE


def _same_value(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=SAME_VALUE)


def _comparable(line: str) -> Line:
    """Durations, residuals within their tolerance and float32 values, replaced by their kind."""
    residuals: list[float] = []
    values: list[float] = []

    def rounding(match: re.Match[str]) -> str:
        if float(match["residual"]) > float(match["tolerance"]):
            return match[0]
        residuals.append(float(match["residual"]))
        return f"{match['before']}<rounding>{match['between']}{match['tolerance']}"

    def value(match: re.Match[str]) -> str:
        if len(match[0].replace(".", "").lstrip("0")) < VALUE_DIGITS:
            return match[0]
        values.append(float(match[0]))
        return "<value>"

    text = _DURATION.sub("<duration>", _RESIDUAL.sub(rounding, line.rstrip()))
    return Line(_VALUE.sub(value, text), tuple(residuals), tuple(values))


def agrees(shown: list[str], printed: list[str]) -> str | None:
    """None where a page shows what was printed; else the first line that it shows and that was not printed there."""
    lines = iter(map(_comparable, printed))
    anywhere = False
    for text in shown:
        line = _comparable(text)
        if line.text == ELISION:
            anywhere = True
            continue
        if anywhere:
            agreeing = any(line.agrees(candidate) for candidate in lines)
        else:
            following = next(lines, None)
            agreeing = following is not None and line.agrees(following)
        if not agreeing:
            return _DURATION.sub("<duration>", text.rstrip())
        anywhere = False
    left_over = None if anywhere else next((line.text for line in lines if line.text), None)
    return None if left_over is None else f"(the page leaves out: {left_over})"


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules in the folder can be imported, as in an interpreter started there; they are forgotten afterwards."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").parent == folder:
                del sys.modules[name]


def run_page(page: Path, folder: Path) -> list[str]:
    """Run a page's blocks in a folder; everything in which the page is not right, in its own words."""
    wrong: list[str] = []
    names: dict[str, object] = {"__name__": page.stem}
    (folder / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page.read_text()):
        where = f"{page.name}:{block.line}"
        if block.file is not None:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body)
        elif block.runs and block.language == "python":
            with contextlib.chdir(folder), _importable(folder), contextlib.redirect_stdout(None):
                exec(compile(block.body, where, "exec"), names)
        elif block.runs and block.language == "console":
            for command in commands(block.body):
                code, output = typed(command.words, folder)
                if code != command.code:
                    wrong.append(f"{where}: `{command.words}` ended with {code}, not {command.code}:\n{output}")
                elif command.shown and (line := agrees(command.shown, output.splitlines())) is not None:
                    wrong.append(f"{where}: `{command.words}` did not print {line!r} there, but:\n{output}")
    return wrong


def renewed(shown: list[str], printed: list[str]) -> list[str]:
    """What a page shows of an output, as it is printed now: between elisions, the lines most like those shown."""

    def unlike(line: str, other: str) -> bool:
        return _NUMBER.sub("#", line) != _NUMBER.sub("#", other)

    if ELISION not in shown:
        return printed
    found: list[str] = []
    start = 0
    for number, part in enumerate("\n".join(["", *shown]).split(f"\n{ELISION}")):
        lines = part.split("\n")[1:]
        places = range(start, len(printed) - len(lines) + 1)
        at = min(places, key=lambda place: sum(map(unlike, lines, printed[place:])), default=start)
        found += [ELISION] if number else []
        found += printed[at : at + len(lines)]
        start = at + len(lines)
    return found


def refreshed(page: Path, folder: Path) -> str:
    """The page with the present output of every command that shows one."""
    text = page.read_text()
    for block in blocks(text):
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.body)
        elif block.runs and block.language == "console":
            body = block.body
            for command in commands(block.body):
                _, output = typed(command.words, folder)
                if command.shown:
                    now = renewed(command.shown, output.splitlines())
                    body = body.replace("\n".join(command.shown) + "\n", "\n".join(now) + "\n", 1)
            text = text.replace(block.body, body, 1)
    return text


def main() -> None:
    """Refresh the pages that are named."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").symlink_to(ROOT / "examples")
            page = Path(name)
            page.write_text(refreshed(page, Path(folder)))


if __name__ == "__main__":
    main()
