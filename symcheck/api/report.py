"""The report that a verification returns: results, with methods to save and display them."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from symcheck.engine.results import Counterexample, PropertyResult, RunResult, overall_verdict
from symcheck.errors import SymcheckError
from symcheck.files import write_text
from symcheck.representations import Representation
from symcheck.verdict import Verdict


class SymmetryFailedError(AssertionError):
    """An error for a verification that failed; its message is the terminal report.

    Attributes:
        report: the whole report.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(f"symmetry {report.verdict}\n{report.to_text()}")


@dataclasses.dataclass(frozen=True)
class Page:
    """A page that a notebook displays directly.

    Attributes:
        html: a complete HTML document.
        height: the height in pixels when the page is embedded in another page.
    """

    html: str
    height: int = 620

    def _repr_html_(self) -> str:
        from symcheck_reports import html

        return html.frame(self.html, self.height)

    def save_html(self, path: str | Path) -> Path:
        """Write the page; like `Report.save_html`."""
        return write_text(path, self.html)


@dataclasses.dataclass(frozen=True)
class DrawableCounterexample(Counterexample):
    """A counterexample with its run, so that it can be drawn.

    Attributes:
        run: the run.
        property_name: the property it refutes.
    """

    run: RunResult | None = dataclasses.field(default=None, repr=False, compare=False)
    property_name: str = dataclasses.field(default="", compare=False)

    def plot(self) -> Page:
        """A page with the state, its image and both next states, and with the expected and measured values.

        Returns:
            A page that a notebook displays. The page contains drawings if the environment is known or can render
            itself, and numbers otherwise.

        Raises:
            SymcheckError: the counterexample was constructed by hand and belongs to no run.
        """
        from symcheck_reports import html

        if self.run is None:
            raise SymcheckError(
                "this counterexample belongs to no run.",
                remedy="Take the counterexample from a report: report[name].counterexample",
            )
        return Page(html.render_counterexamples(self.run, self.property_name))

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()


def _drawable(result: PropertyResult, run: RunResult) -> PropertyResult:
    """The same result, its counterexample with a `plot` method."""
    example = result.counterexample
    if example is None:
        return result
    values = {field.name: getattr(example, field.name) for field in dataclasses.fields(Counterexample)}
    drawable = DrawableCounterexample(**values, run=run, property_name=result.name)
    return dataclasses.replace(result, counterexample=drawable)


class Report:
    """The result of a verification: one `RunResult` per symmetry checked.

    Args:
        results: at least one.
        hidden_representation: how the hidden state of a recurrent network transforms, if that is known; otherwise None.

    Attributes:
        results: the same, as a tuple.
        hidden_representation: rho with h(L x) = rho(g) h(x), where h concatenates the hidden states of all recurrent
            modules as torch returns them; LSTM cell states transform in the same way. None for other networks and
            subjects, and if the run did not determine it.
    """

    def __init__(self, results: Sequence[RunResult], hidden_representation: Representation | None = None) -> None:
        if not results:
            raise SymcheckError("there are no results: nothing was tested.")
        self.results = tuple(results)
        self.hidden_representation = hidden_representation

    def __repr__(self) -> str:
        subjects = ", ".join(f"{result.target} under {result.symmetry}" for result in self.results)
        return f"<Report {self.verdict}: {subjects}>"

    def __str__(self) -> str:
        return self.to_text()

    def __iter__(self) -> Iterator[PropertyResult]:
        return iter(self.properties)

    def __getitem__(self, name: str) -> PropertyResult:
        """The first property of this name.

        Raises:
            KeyError: no property has that name; the message lists those that were checked.
        """
        for result in self.properties:
            if result.name == name:
                return result
        raise KeyError(
            f"{name!r} was not checked; the run checked {', '.join(result.name for result in self.properties)}"
        )

    @property
    def verdict(self) -> Verdict:
        """The weakest verdict of all symmetries: failed, then undecided, then passed, then proved."""
        return overall_verdict(result.verdict for result in self.results)

    @property
    def properties(self) -> tuple[PropertyResult, ...]:
        """The property results of all symmetries, in the order of the checks; counterexamples have `plot()`."""
        return tuple(_drawable(item, run) for run in self.results for item in run.properties)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The wrong columns of a mirror function, one object each; empty for other kinds."""
        return [dict(column) for result in self.results for column in result.columns]

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before everything was checked."""
        return any(result.interrupted for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """The published JSON object, schema `symcheck/2`, as a dictionary."""
        import json

        decoded: dict[str, Any] = json.loads(self.to_json())
        return decoded

    def to_json(self) -> str:
        """The published JSON text, schema `symcheck/2`; one object per symmetry under `reports` when several."""
        from symcheck_reports import json as writer

        return writer.render(self.results)

    def to_text(self) -> str:
        """The terminal report as plain text."""
        from rich.console import Console

        from symcheck_reports import terminal

        stream = io.StringIO()
        terminal.print_run(self.results, Console(file=stream, width=120, no_color=True, highlight=False))
        return stream.getvalue()

    def to_html(self) -> str:
        """One self-contained HTML page."""
        from symcheck_reports import html

        return html.render_run(self.results)

    def to_junit(self) -> str:
        """JUnit XML: one test case per property."""
        from symcheck_reports import junit

        return junit.render(self.results)

    def to_markdown(self, *, after: int = 0) -> str:
        """Markdown for a pull request or a step summary.

        Args:
            after: size in bytes of the existing summary; the total stays below GitHub's limit.
        """
        from symcheck_reports import markdown

        return markdown.render(self.results, budget=markdown.BUDGET_BYTES - after)

    def save_html(self, path: str | Path) -> Path:
        """Write the page.

        Args:
            path: the file to write; its folder must exist.

        Returns:
            The path written.

        Raises:
            SymcheckError: the folder does not exist or cannot be written.
        """
        return write_text(path, self.to_html())

    def save_json(self, path: str | Path) -> Path:
        """Write the JSON; like `save_html`."""
        return write_text(path, self.to_json())

    def raise_if_failed(self) -> None:
        """Raise when a property failed.

        Raises:
            SymmetryFailedError: an AssertionError whose message is the terminal report.
        """
        if self.verdict == "failed":
            raise SymmetryFailedError(self)

    def _repr_html_(self) -> str:
        from symcheck_reports import html

        return html.notebook(self.results)
