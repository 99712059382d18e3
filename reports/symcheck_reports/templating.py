"""Jinja2 templates with autoescaping, cleaned external text, and a page shell without network requests.

`section` renders one template of `templates/` to markup; `document` puts sections into a page whose content security
policy allows its own style and script by their hash, images from `data:` addresses, and nothing else.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from symcheck.verdict import Verdict
from symcheck_reports.formatting import clean, count, one_line
from symcheck_reports.page_verdict import PageKind


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        anchor: its id, unique on the page.
        title: its heading.
        body: everything below the heading, as markup.
    """

    anchor: str
    title: str
    body: Markup


@dataclass(frozen=True)
class PageHead:
    """The part of a page above its sections.

    Attributes:
        eyebrow: the kind of report, in small type.
        sentence: the heading, which states the verdict in a sentence.
        lead: one or two sentences below it; "" for none.
        verdict: shown as a coloured word; None for none.
        facts: (name, value) pairs, shown in one row.
        kind: the kind of page, for `symcheck report`.
    """

    eyebrow: str
    sentence: str
    lead: str = ""
    verdict: Verdict | None = None
    facts: Sequence[tuple[str, str]] = ()
    kind: PageKind = "page"


def document(head: PageHead, sections: Sequence[Section], footer: str = "") -> str:
    """A complete HTML document.

    Args:
        head: verdict and facts.
        sections: the parts, in order.
        footer: a closing sentence, for instance on omitted parts.

    Returns:
        The page as text, in UTF-8, without external references.
    """
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page: str = _template("page.html.j2").render(
        head=head,
        sections=sections,
        footer=footer,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
    )
    return page


def section(template: str, anchor: str, title: str, **values: Any) -> Section:
    """One section from its template.

    Args:
        template: the template's name without its ending.
        anchor: the section's id.
        title: its heading.
        **values: the variables of the template; a missing one raises.
    """
    return Section(anchor, title, Markup(_template(f"{template}.html.j2").render(anchor=anchor, **values)))


def _finalize(value: Any) -> Any:
    return clean(value) if type(value) is str else value


@functools.cache
def _page_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("symcheck_reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        formula=formula,
        count=count,
        one_line=one_line,
        spanned=spanned,
        breakable=breakable,
        breaking=breaking,
        prose=prose,
        folded=folded,
    )
    return environment


@functools.cache
def _template(name: str) -> Any:
    return _page_environment().get_template(name)


@functools.cache
def _asset(name: str) -> str:
    text = resources.files("symcheck_reports").joinpath(f"templates/{name}").read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("/*"))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def breakable(text: str) -> Markup:
    """A name with line-break opportunities after underscores, points and slashes, and before an index.

    Example:
        >>> breakable("reward_invariance")
        Markup('<bdi>reward_<wbr>invariance</bdi>')
    """
    return Markup("<bdi>{}</bdi>").format(
        Markup(re.sub(r"(?<=[_/])|(?<=\.)(?=[A-Za-z_])|(?<=\w)(?=\[)", "<wbr>", str(escape(one_line(text, 80)))))
    )


_LONG_WORD = re.compile(r"\S{20,}")
_JOINT = re.compile(r"(?<=[_./:])(?=\w)")


def breaking(text: str) -> Markup:
    """A text whose long words, mainly paths, may break after their separators.

    Example:
        >>> breaking("examples/policies.py:make holds")
        Markup('examples/<wbr>policies.<wbr>py:<wbr>make holds')
    """
    parts = re.split(r"(\s+)", clean(text))
    written = (
        Markup("<wbr>").join(_JOINT.split(part)) if _LONG_WORD.fullmatch(part) else escape(part) for part in parts
    )
    return Markup("").join(written)


_NUMBER = re.compile(r"\d[\d.]*e[+-]\d+")


def prose(text: str) -> Markup:
    """A sentence without line breaks at the sign of an exponent.

    Example:
        >>> prose("at most 1.0e-12 < x")
        Markup('at most <span class="nb">1.0e-12</span> &lt; x')
    """
    return Markup(_NUMBER.sub(r'<span class="nb">\g<0></span>', str(escape(clean(text)))))


_LEAD = 170  # number of characters in two or three lines of a table cell


def folded(text: str) -> tuple[str, str]:
    """The sentences that fit into a table cell (at least one), and the remaining ones.

    Example:
        >>> folded("One. Two.")
        ('One. Two.', '')
        >>> folded("A" * 170 + ". Two.")[1]
        'Two.'
    """
    if len(text) <= _LEAD:
        return text, ""
    ends = [i + 1 for i in range(len(text) - 1) if text[i : i + 2] == ". " and _outside(text[:i])]
    cut = max([end for end in ends if end <= _LEAD] or ends[:1], default=len(text))
    return text[:cut], text[cut:].strip()


def _outside(text: str) -> bool:
    return text.count("(") <= text.count(")")


def spanned(text: str) -> Markup:
    """A cell of two lines: the part after the newline in small type below the first.

    Example:
        >>> spanned("480" + chr(10) + "(455 to 497)")
        Markup('480<span class="sub">(455 to 497)</span>')
    """
    first, _, second = text.partition(chr(10))
    return Markup('{}<span class="sub">{}</span>').format(first, second) if second else escape(first)


_SYMBOLS = (
    ("&lt;-&gt;", "↔"),
    ("-&gt;", "→"),
    ("rho_", "ρ_"),
    (" ~ ", " ∼ "),
)
_SUBSCRIPT = re.compile(r"\b([oasxhρ])_?(\d+|out|in|l)\b")
_MINUS = re.compile(r"(?<![\w.])-(?=[\w(<ρ ])")


def formula(text: str) -> Markup:
    """Typeset a formula of the engine, with arrows, minus signs and subscripts.

    Args:
        text: for instance "(o0, o1) -> (-o0, o1)".

    Returns:
        Markup; markup characters in `text` are escaped.

    Example:
        >>> formula("(o0) -> (-o0)")
        Markup('(o<sub>0</sub>) → (−o<sub>0</sub>)')
    """
    written = str(escape(clean(text)))
    for plain, symbol in _SYMBOLS:
        written = written.replace(plain, symbol)
    written = _MINUS.sub("−", written)
    return Markup(_SUBSCRIPT.sub(r"\1<sub>\2</sub>", written))
