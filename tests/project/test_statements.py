"""One sentence a code, and no sentence read back: every statement is data until a writer prints it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2
import pytest
from jinja2 import meta, nodes
from jinja2.visitor import NodeTransformer

from symcheck import findings, verdict
from symcheck.statements import statement
from symcheck.statements.pattern import pattern_of
from symcheck.statements.statement import TABLES, environment, sentence_of, state, table
from symcheck.verdict import Facts, ReasonCode, decide

ROOT = Path(__file__).parents[2]
PACKAGES = ("symcheck", "properties", "reports", "reference_agents")
CODES = [code for name in TABLES for code in table(name)]


@dataclass(frozen=True)
class Call:
    """A statement made in the source.

    Attributes:
        place: file and line.
        codes: those that it may have; empty where a variable holds the code.
        fields: the names passed.
        is_open: whether more fields come from a mapping (`**fields`).
    """

    place: str
    codes: tuple[str, ...]
    fields: frozenset[str]
    is_open: bool


@cache
def texts() -> dict[str, str]:
    """The text of every module."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@cache
def nodes_of(path: str) -> list[ast.AST]:
    """The syntax of one module, node by node; to read all of them takes seconds."""
    return list(ast.walk(ast.parse(texts()[path])))


def modules() -> dict[str, list[ast.AST]]:
    """The syntax of every module."""
    return {path: nodes_of(path) for path in texts()}


def _makers(syntax: list[ast.AST]) -> dict[str, str]:
    """What `state` and `Statement` of `symcheck.statements.statement` are called in a module."""
    imports = (node for node in syntax if isinstance(node, ast.ImportFrom))
    ours = (node for node in imports if node.module == "symcheck.statements.statement")
    aliases = (alias for node in ours for alias in node.names if alias.name in ("state", "Statement"))
    return {alias.asname or alias.name: alias.name for alias in aliases}


def _codes(node: ast.expr) -> tuple[str, ...]:
    """The codes that an expression may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    if isinstance(node, ast.IfExp):
        return (*_codes(node.body), *_codes(node.orelse))
    if isinstance(node, ast.Attribute) and node.attr == "value":
        return _codes(node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ReasonCode":
        return (ReasonCode[node.attr].value,)
    return ()


def _calls() -> Iterator[Call]:
    for path, text in texts().items():
        if "symcheck.statements.statement" not in text:
            continue
        syntax = nodes_of(path)
        makers = _makers(syntax)
        for node in syntax:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers:
                fields, is_open = _fields(node, makers[node.func.id])
                yield Call(f"{path}:{node.lineno}", _codes(node.args[0]), fields, is_open)


def _fields(call: ast.Call, maker: str) -> tuple[frozenset[str], bool]:
    """The names of the fields that a call gives, and whether there may be others."""
    if maker == "state":
        names: list[str | None] = [keyword.arg for keyword in call.keywords]
    elif len(call.args) == 1:
        return frozenset(), False
    elif isinstance(call.args[1], ast.Dict):
        keys = call.args[1].keys
        names = [str(key.value) if isinstance(key, ast.Constant) else None for key in keys]
    else:
        return frozenset(), True
    return frozenset(name for name in names if name is not None), None in names


@cache
def calls() -> list[Call]:
    """Every statement made in the source."""
    return list(_calls())


class _WithoutBranches(NodeTransformer):
    """A template without what is said under a condition only; conditions themselves stay, but for `is defined`."""

    def visit_If(self, node: nodes.If) -> nodes.Node:  # noqa: N802 (named by Jinja2)
        return nodes.Output(self._asked(node.test))

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:  # noqa: N802
        return nodes.Tuple(self._asked(node.test), "load")

    @staticmethod
    def _asked(test: nodes.Expr) -> list[nodes.Expr]:
        tests = [test, *test.find_all(nodes.Test)]
        return [] if any(isinstance(node, nodes.Test) and node.name == "defined" for node in tests) else [test]


def _required(template: str) -> set[str]:
    """The fields without which a sentence cannot be said, whatever the others are."""
    return meta.find_undeclared_variables(_WithoutBranches().visit(environment().parse(template)))


def _possible(template: str) -> set[str]:
    return meta.find_undeclared_variables(environment().parse(template))


def _wrong_fields(call: Call, code: str) -> list[str]:
    """The fields that the sentence needs and the call does not give."""
    return [] if call.is_open else sorted(_required(sentence_of(code)) - call.fields)


def test_the_search_itself_finds_statements() -> None:
    assert len(calls()) > 20
    assert sum(bool(call.codes) for call in calls()) > 15


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_one_sentence(code: str) -> None:
    assert Counter(CODES)[code] == 1
    entries = [table(name)[code] for name in TABLES if code in table(name)]
    assert [isinstance(entry.get("sentence"), str) and bool(entry["sentence"].strip()) for entry in entries] == [True]
    assert "patterns" not in entries[0]
    assert not sentence_of(code).rstrip().endswith(".")
    assert pattern_of(code)


def test_a_table_is_written_by_its_codes_once() -> None:
    for name in TABLES:
        path = ROOT / "symcheck" / "statements" / f"{name}.toml"
        headings = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("[")]
        assert headings == [f"[{code}]" for code in tomllib.loads(path.read_text(encoding="utf-8"))]


def test_causes_are_numbered_and_reasons_are_enumerated() -> None:
    assert all(code.startswith("SYM") and code[3:].isdigit() and len(code) == 6 for code in table("causes"))
    assert {member.value for member in ReasonCode} == set(table("reasons"))


def test_every_statement_has_a_known_code() -> None:
    assert {call.place: call.codes for call in calls() if not set(call.codes) <= set(CODES)} == {}


def test_every_statement_has_the_fields_of_its_sentence() -> None:
    stated = [(call, code) for call in calls() for code in call.codes if code in CODES]
    missing = {(call.place, pattern_of(code)): _wrong_fields(call, code) for call, code in stated}
    assert {place: fields for place, fields in missing.items() if fields} == {}


def _codes_in(syntax: list[ast.AST]) -> set[str]:
    """The codes that a module names: as text, as the beginning of a text that it completes, or as a reason."""
    named, beginnings = set(), set()
    for node in syntax:
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            beginnings.add(str(node.values[0].value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named.add(node.value)
        elif isinstance(node, ast.Attribute):
            named.update(_codes(node))
    completed = {code for code in CODES for beginning in beginnings if _is_beginning(beginning, code)}
    return (named & set(CODES)) | completed


def _is_beginning(text: str, code: str) -> bool:
    return len(text) > 3 and text.endswith("_") and code.startswith(text)


def test_every_code_is_stated_somewhere() -> None:
    assert sorted(set(CODES) - set().union(*map(_codes_in, modules().values()))) == []


def _names_given(syntax: list[ast.AST]) -> set[str]:
    """The names that a module passes to anything, has as keys, or sets as a key."""
    names = set()
    for node in syntax:
        if isinstance(node, ast.Call):
            names |= {keyword.arg for keyword in node.keywords if keyword.arg is not None}
        elif isinstance(node, ast.Dict):
            names |= {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            names.add(str(node.slice.value))
    return names


def test_every_field_that_a_sentence_may_use_is_given_by_some_code() -> None:
    given = set().union(*map(_names_given, modules().values()))
    missing = {code: sorted(_possible(sentence_of(code)) - given) for code in CODES}
    assert {code: names for code, names in missing.items() if names} == {}


@pytest.mark.parametrize(
    ("template", "required"),
    [
        ("{{ a }} of {{ b | plural('pair') }}", {"a", "b"}),
        ("{{ a }}{% if b is defined %} ({{ b }}, {{ c }}){% endif %}", {"a"}),
        ("{% if a %}{{ b }}{% else %}{{ c }}{% endif %}", {"a"}),
        ("{{ b if a else c }}", {"a"}),
        ("{% for x in a %}{{ x }}{{ ', ' if not loop.last }}{% endfor %}", {"a"}),
    ],
)
def test_the_fields_that_a_sentence_needs_are_told_from_those_that_it_may_use(
    template: str, required: set[str]
) -> None:
    assert _required(template) == required


def test_a_statement_without_a_field_that_its_sentence_needs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("planted.py:1", ("SYM014",), frozenset({"sign"}), is_open=False)
    assert _wrong_fields(call, "SYM014") == ["coordinate"]
    with pytest.raises(jinja2.UndefinedError, match="coordinate"):
        _ = state("SYM014", sign="-1").text
    monkeypatch.setitem(statement.table("causes"), "SYM999", {"title": "t"})  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        pattern_of("SYM999")


GUARDED = {
    ReasonCode.NOT_REPEATABLE: Facts(checked=9, unrepeatable=2),
    ReasonCode.VIOLATIONS_UNJUDGED: Facts(checked=9, unjudged=1),
    ReasonCode.INTERRUPTED: Facts(checked=0, interrupted=True),
    ReasonCode.NAN_ONLY: Facts(checked=9, finite=False, quantity="reward"),
    ReasonCode.FAIL_FAST: Facts(checked=9, stopped=True),
    ReasonCode.TIME_UP: Facts(checked=1, least=9, time_up=True),
    ReasonCode.TOO_FEW: Facts(checked=1, least=9),
    ReasonCode.ROUNDING_DECIDES: Facts(checked=9, swamped=0.2),
    ReasonCode.NOTHING_MOVES: Facts(checked=9, moved=False),
    ReasonCode.CONSTANT: Facts(checked=9, constant="0", quantity="reward"),
    ReasonCode.SILENT_COORDINATES: Facts(checked=9, silent=("observation[2]",)),
}


def test_every_reason_that_facts_give_is_in_the_table_above() -> None:
    assert set(GUARDED) == {code for code, _ in verdict._GUARDS} | {
        ReasonCode.CONSTANT,
        ReasonCode.SILENT_COORDINATES,
    }


@pytest.mark.parametrize("code", GUARDED)
def test_every_reason_that_facts_give_has_the_fields_of_its_sentence(code: ReasonCode) -> None:
    reason = decide(GUARDED[code]).reason
    assert reason is not None
    assert reason.code == code.value
    assert reason.text


# Every module that uses regular expressions, and what outside text it reads or writes with them. A module that searches
# the program's own sentences has no place here: take the statement's code and fields.
OUTSIDE_TEXT = {
    "symcheck/mujoco/observations.py": "the source code of Gymnasium's environments",
    "symcheck/mujoco/names.py": "names in a robot's model file",
    "symcheck/spaces/labels.py": "coordinate names as an environment's author gives them",
    "symcheck/envs/targets.py": "environment ids and attribute paths as a user types them",
    "symcheck/envs/atlas_page.py": "the columns of a Markdown table that it writes",
    "symcheck/engine/networks/capture/capture.py": "torch's names of sizes",
    "symcheck/entries/forms.py": "entries of SPEC files",
    "symcheck/representations/named_parts.py": "representations that users write as text",
    "symcheck/symmetry/spec.py": "names of groups in SPEC files",
    "symcheck/groups/catalog.py": "names of groups as a user types them",
    "symcheck/groups/near_names.py": "names of groups as a user types them",
    "reference_agents/other_trainers.py": "the names that other trainers gave their runs",
    "symcheck/findings.py": "what a user saw, in words, to find a code by",
    "reports/symcheck_reports/templating.py": "where a browser may break a word, and formulas as HTML",
    "reports/symcheck_reports/units.py": "environment ids and coordinate names",
    "reports/symcheck_reports/markdown.py": "characters that Markdown would read as its own",
    "reports/symcheck_reports/sketches.py": "environment ids",
    "reference_agents/encoding/environment.py": "names of environments and networks, which become names of folders",
}


def _uses_regular_expressions(syntax: list[ast.AST]) -> bool:
    modules = {alias.name for node in syntax if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in syntax if isinstance(node, ast.ImportFrom)}
    return bool(modules & {"re", "regex", "fnmatch"})


def test_regular_expressions_read_outside_text_only() -> None:
    importing = [path for path, text in texts().items() if re.search(r"\b(re|regex|fnmatch)\b", text)]
    assert sorted(path for path in importing if _uses_regular_expressions(nodes_of(path))) == sorted(OUTSIDE_TEXT)


# Attributes that hold sentences of the program's own.
_SENTENCES = {"detail", "text", "method_reason", "verdict_detail", "reason", "finding", "why"}
_SEARCHES = {
    "startswith", "endswith", "split", "rsplit", "partition", "rpartition", "find", "index", "count", "lower", "upper",
    "replace", "removeprefix", "removesuffix", "splitlines",
}  # fmt: skip


def _sentence(node: ast.expr) -> bool:
    """Whether an expression is a sentence, or part of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr in _SENTENCES


def _searched_sentences(syntax: list[ast.AST]) -> list[int]:
    lines = []
    for node in syntax:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES:
            lines += [node.lineno] if _sentence(node.func.value) else []
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            lines += [node.lineno] if any(_sentence(side) for side in node.comparators) else []
    return lines


def test_no_sentence_of_a_result_is_searched() -> None:
    assert {path: lines for path, syntax in modules().items() if (lines := _searched_sentences(syntax))} == {}


@pytest.mark.parametrize(
    "planted",
    [
        'approximate = "approximate" in result.detail.lower()',
        'approximate = "approximate" in result.detail',
        'first = result.detail[:40].partition(". ")[0]',
        'skipped = "not claimed" in run.after.detail',
        'built_in = note.text.startswith("built in")',
    ],
)
def test_a_search_of_a_sentence_is_caught(planted: str) -> None:
    assert _searched_sentences(list(ast.walk(ast.parse(planted)))) == [1]


@pytest.mark.parametrize("planted", ["known = name in result.causes", 'line = result.detail + "."', "x = y.lower()"])
def test_what_searches_no_sentence_is_not_accused(planted: str) -> None:
    assert _searched_sentences(list(ast.walk(ast.parse(planted)))) == []


def test_what_pages_show_of_a_note_is_a_word_that_they_know() -> None:
    assert {str(entry.get("shown", "")) for entry in table("notes").values()} <= {"", "beside", "table", "warning"}


def test_explain_reads_the_tables_that_reports_are_written_from() -> None:
    for name in TABLES:
        assert list(findings.findings(name)) == list(table(name))
        assert all(finding.sentence == pattern_of(code) for code, finding in findings.findings(name).items())
