"""A file that cannot be imported: the message names the user's own line, and what to do."""

import pytest

from symcheck.errors import TargetError
from symcheck.loading import load_attribute


def refused(tmp_path, text: str, name: str = "my_env") -> str:
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(TargetError) as raised:
        load_attribute(f"{tmp_path / name}.py:env", where="TARGET")
    return str(raised.value)


def test_the_line_is_the_users_own_where_a_library_raises(tmp_path):
    message = refused(tmp_path, "import json\n\nsettings = json.loads('{')\n")
    assert f"({tmp_path / 'my_env.py'}:3)" in message
    assert message.endswith("python -c 'import my_env'.")


def test_the_line_is_in_the_file_that_is_imported_in_turn(tmp_path):
    (tmp_path / "my_parts.py").write_text("\n\nraise RuntimeError('no engine')\n")
    assert f"RuntimeError ({tmp_path / 'my_parts.py'}:3): no engine." in refused(tmp_path, "import my_parts\n")


def test_a_symmetry_that_is_refused_in_a_file_keeps_its_own_advice(tmp_path):
    claim = "import symcheck as sc\nmirror = sc.Symmetry('turn', sc.groups.cyclic(2), [['+2', '-1']], [[1, 0]])\n"
    message = refused(tmp_path, claim)
    assert f"RepresentationError ({tmp_path / 'my_env.py'}:2)" in message
    assert "or declare the group that the entries generate." in message
    assert ".." not in message.replace("...", "")
    assert "python -c" not in message


def test_a_file_that_is_no_python_is_named_once(tmp_path):
    message = refused(tmp_path, "def env(:\n")
    assert "SyntaxError: invalid syntax (my_env.py, line 1)." in message


def test_nothing_of_a_broken_file_stays_imported(tmp_path):
    refused(tmp_path, "raise ValueError('first')\n")
    (tmp_path / "my_env.py").write_text("env = 7\n")
    assert load_attribute(f"{tmp_path / 'my_env.py'}:env", where="TARGET") == 7
