"""What must not stop the program: files, numbers and names that nobody expects; and what it says when it breaks."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from commands import run

import symcheck as sc
from symcheck.cli.settings import find_settings
from symcheck.crashes import explain_crash
from symcheck.documents import UnreadableError, parse_json, read_json, read_toml
from symcheck.errors import SymcheckError
from symcheck.files import write_text

SPEC = 'name = "{name}"\ngroup = "cyclic(2)"\nobservation = [[-1, -1, -1, -1]]\naction = [[1, 0]]\n'
DIGITS = "9" * 5000
QUICK = ("--samples", 20, "--quiet")
BLOCK = 'name = "m"\ngroup = "cyclic(2)"\naction = [[1, 0]]\n[[observation.blocks]]\nname = "a"\n'


def refused_entry(entry: object) -> str:
    """The message with which an observation entry is refused."""
    with pytest.raises(SymcheckError) as raised:
        sc.Symmetry("m", sc.groups.cyclic(2), [entry], [[1, 0]])
    return str(raised.value)


def refused(*words: object) -> str:
    """The one message, at a length that can be read, with which the command line refuses something."""
    code, output = run(*words)
    assert code == 2, output
    assert len(output) < 3_000
    return output


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_files_of_windows_editors_are_read(folder, encoding):
    (folder / "m.toml").write_bytes(SPEC.format(name="Spiegel ü").encode(encoding))
    (folder / "symcheck.toml").write_bytes("samples = 17\n".encode(encoding))
    assert run("verify-env", "CartPole-v1", "--symmetry", "m.toml", "--quiet") == (0, "passed\n")
    assert read_toml(folder / "symcheck.toml") == {"samples": 17}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'name = "\xe9"\n', "bytes that are not UTF-8 text"),
        ("name".encode("utf-16-le"), "NUL bytes, as in UTF-16 text without a byte-order mark"),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_words(folder, content, said):
    (folder / "m.toml").write_bytes(content)
    assert said in refused("verify-env", "CartPole-v1", "--symmetry", "m.toml")


NESTED = "[" * 5000 + "]" * 5000
MONSTERS = {
    "digits": f'name = "m"\ngroup = "cyclic(2)"\nobservation = [[{DIGITS}, -1]]\naction = [[1, 0]]\n',
    "signed digits": f'name = "m"\ngroup = "cyclic(2)"\nobservation = [["-{DIGITS}", "2"]]\naction = [[1, 0]]\n',
    "group": SPEC.format(name="m").replace("cyclic(2)", f"cyclic({DIGITS})"),
    "nested": f'name = "m"\ngroup = "cyclic(2)"\nobservation = {NESTED}\naction = [[1, 0]]\n',
    "nested group": SPEC.format(name="m").replace("cyclic(2)", "product(" * 5000 + "C2" + ")" * 5000),
    "grid": BLOCK + 'shape = [100000000, 10000000]\nmap = ["flip_lr"]\n',
    "frames": BLOCK + 'size = 2\nhistory = 500000000000000\nmap = [["-1", "-2"]]\n',
    "size": BLOCK + 'size = 1000000000000000\nmap = ["identity"]\n',
}


@pytest.mark.parametrize("case", MONSTERS)
@pytest.mark.parametrize("command", ["verify-env CartPole-v1 --symmetry", "basis"])
def test_a_symmetry_beyond_use_is_refused(folder, case, command):
    (folder / "m.toml").write_text(MONSTERS[case])
    refused(*command.split(), "m.toml")


@pytest.mark.parametrize(
    "entry",
    [[10**5000, 1], [10**400, -1], [f"-{DIGITS}", "1"], ["(" * 5000, "1"], ["1/0", "1"], {"matrix": [[10**400]]}],
)
def test_an_entry_in_python_beyond_use_is_refused_too(entry):
    assert len(refused_entry(entry)) < 3_000


@pytest.mark.parametrize("text", [f"samples = {DIGITS}", f"checks = {NESTED}"])
def test_settings_beyond_use_are_refused(folder, text):
    (folder / "symcheck.toml").write_text(text)
    with pytest.raises(SymcheckError, match=r"symcheck\.toml"):
        find_settings(folder)


@pytest.mark.parametrize("text", [NESTED, '{"a":' * 5000 + "1" + "}" * 5000, f'{{"schema": {DIGITS}}}', "[" * 101])
def test_json_beyond_use_is_refused_wherever_it_is_read(folder, text):
    (folder / "r.json").write_text(text)
    refused("replay", "r.json")
    refused("verify-env", "CartPole-v1", *QUICK, "--baseline", "r.json")
    refused("verify-env", "CartPole-v1", *QUICK, "--env-kwargs", text)
    with pytest.raises(UnreadableError):
        parse_json(text)


def test_ordinary_nesting_and_long_numbers_are_read(folder):
    (folder / "r.json").write_text("[" * 99 + str(10**200) + "]" * 99)
    value = read_json(folder / "r.json")
    while isinstance(value, list):
        value = value[0]
    assert value == 10**200


def test_more_samples_than_any_machine_holds_are_refused(folder):
    assert "at most 100,000,000" in refused("verify-env", "CartPole-v1", "--samples", 999999999999999)
    assert "at most 100,000,000" in refused("discover", "CartPole-v1", "--samples", 999999999999999)
    with pytest.raises(SymcheckError, match="at most"):
        sc.verify_env("CartPole-v1", samples=10**400)
    refused("verify-env", "CartPole-v1", "--samples", DIGITS)
    refused("verify-env", "CartPole-v1", "--seed", DIGITS[:4000])


@pytest.mark.parametrize(
    "words", [["x" * 9000], ["verify-env", "x" * 9000], ["verify-env", "A-v0", "--alpha", "x" * 9000]]
)
def test_long_echoes_are_cut(folder, words):
    refused(*words)
    refused("verify-env", "CartPole-v1", "--symmetry", "x" * 9000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_named_pipe_is_refused_and_not_waited_for(folder):
    for name in ("m.toml", "r.json"):
        os.mkfifo(folder / name)
    assert "named pipe" in refused("verify-env", "CartPole-v1", "--symmetry", "m.toml")
    assert "named pipe" in refused("replay", "r.json")
    assert "no process reads" in refused("verify-env", "CartPole-v1", *QUICK, "--json", "r.json")


def test_a_pipe_that_somebody_reads_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "the report")
    assert os.read(reader, 100) == b"the report"
    os.close(reader)


class Line(gym.Env):
    """A point on a line; what it shows and pays is up to the subclass."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.x = np.zeros(2)

    def shown(self):
        return self.x.copy()

    def paid(self):
        return 1.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 2)
        return self.shown(), {}

    def step(self, action):
        self.x = 0.9 * self.x + (0.1 if action else -0.1)
        return self.shown(), self.paid(), False, False, {}

    def get_state(self):
        return self.x.copy()

    def set_state(self, state):
        self.x = np.array(state, dtype=float)


class Row(Line):
    """Shows a row in place of a vector."""

    def shown(self):
        return self.x[None].copy()


class SometimesRow(Line):
    """Shows a row in half of its states."""

    def shown(self):
        return self.x[None].copy() if self.x[0] > 0 else self.x.copy()


class TextReward(Line):
    """Pays in words."""

    def paid(self):
        return "1.0"


class HugeReward(Line):
    """Pays an integer that no float holds."""

    def paid(self):
        return 10**5000


MIRROR = sc.Symmetry("point reflection", sc.groups.cyclic(2), [[-1, -1]], [[1, 0]])


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Row, r"of shape \(1, 2\), but its space has shape \(2,\)"),
        (SometimesRow, r"of shape \(1, 2\), but its space has shape \(2,\)"),
        (TextReward, r"got 1\.0 \(str\)"),
        (HugeReward, "expected a number as the reward"),
    ],
)
def test_values_that_do_not_fit_are_refused_in_words(env, message):
    assert sc.verify_env(Line, MIRROR, samples=100).verdict == "passed"
    with pytest.raises(SymcheckError, match=message):
        sc.verify_env(env, MIRROR, samples=100)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_names_that_a_terminal_has_no_letters_for_are_written_with_escapes(tmp_path, encoding):
    (tmp_path / "m.toml").write_text(SPEC.format(name="Spiegel 世界"), encoding="utf-8")
    words = [
        Path(sys.executable).parent / "symcheck",
        "verify-env",
        "CartPole-v1",
        "--symmetry",
        "m.toml",
        "--samples",
        "20",
    ]
    environ = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"Spiegel \u4e16\u754c" in done.stdout


PROGRAM = """
from symcheck.streams import run_program

def main():
    raise {error}

run_program("symcheck", main)
"""


def test_an_internal_error_is_one_message_a_file_and_code_4(tmp_path):
    program = PROGRAM.format(error='ValueError("the engine\\nis off")')
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    (trace,) = tmp_path.glob("symcheck-traceback-*.txt")
    assert done.stderr.startswith("symcheck: internal error: ValueError: the engine is off. The traceback is in ")
    assert str(trace) in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback (most recent call last)" in trace.read_text()


def test_an_error_in_the_users_own_code_is_theirs(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    own = tmp_path / "own.py"
    own.write_text("def load(n):\n    return [][n]\n")
    namespace: dict = {}
    exec(compile(own.read_text(), str(own), "exec"), namespace)
    with pytest.raises(IndexError) as raised:
        namespace["load"](3)
    message, code = explain_crash("symcheck", raised.value)
    assert code == 2
    assert f"your code raised IndexError: list index out of range ({own}:2)" in message
    assert explain_crash("symcheck", MemoryError("7 PiB"))[1] == 4
