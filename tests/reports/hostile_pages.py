"""Every kind of page with names that try to be markup, to ask for something, to turn the text and to fill the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from symcheck_reports import index
from symcheck_reports.basis_model import BasisLayer, BasisModel
from symcheck_reports.basis_page import render_basis
from symcheck_reports.curve_model import CurveModel, FailedRun, NetworkCurves, SeedCurve
from symcheck_reports.curves import render_curves
from symcheck_reports.discovery_model import DiscoveryCandidate, DiscoveryModel, DiscoveryRotation
from symcheck_reports.discovery_page import render_discovery
from symcheck_reports.homomorphism_model import HomomorphismModel, Matching
from symcheck_reports.homomorphism_page import render_homomorphism

NASTY = (
    "<script>alert(1)</script><img src=https://example.invalid/x onerror=alert(2)>\"'&]]></style></title>"
    "\x1b[31m\u202e\ud800\x00{{ 7 * 7 }}" + "A" * 1_000
)


def _curves() -> str:
    curves = [SeedCurve(seed, [100, 200, 300], [float("nan"), 1.0, 2.0]) for seed in range(3)]
    failed = (FailedRun(1, NASTY, 100),)
    names = (NASTY, "<b>" + NASTY)
    networks = [
        NetworkCurves(name, rate, curves, verdict="failed", verdict_detail=NASTY, failed_runs=failed)
        for name in names
        for rate in (0.1, 0.2)
    ]
    settings = {NASTY: NASTY}
    texts = {"evaluation": NASTY, "command": NASTY, "versions": {NASTY: NASTY}, "notes": (NASTY,)}
    return render_curves(CurveModel(NASTY, networks, settings, threshold=1.5, **texts))  # type: ignore[arg-type]


def _basis() -> str:
    layer = BasisLayer(NASTY, NASTY, NASTY, (2, 2), 1, 4, 1, 2, NASTY, [[[1.0, 0.0], [0.0, -1.0]]])
    return render_basis(BasisModel(NASTY, NASTY, 2, [layer], command=NASTY, versions=[(NASTY, NASTY)]))


def _homomorphism() -> str:
    return render_homomorphism(
        HomomorphismModel(
            target=NASTY,
            origin=NASTY,
            block=[0, 0, 1],
            pairs=6,
            abstract_pairs=4,
            idle=[False] * 3,
            edges=[(0, 1, 1.0)],
            state_edges=[(0, 2, 1.0), (1, 2, 1.0)],
            matchings=[Matching(0, [0, 1], [[[0], [1]], [[1], [0]]])],
            labels=[NASTY, NASTY, "c"],
            group=NASTY,
            order=NASTY,
            command=NASTY,
            versions=[(NASTY, NASTY)],
        )
    )


def _discovery() -> str:
    return render_discovery(
        DiscoveryModel(
            target=NASTY,
            verdict="passed",
            group=NASTY,
            order=2,
            spec=NASTY,
            narrowing=((NASTY[:40], NASTY),),
            how=NASTY,
            candidates=[DiscoveryCandidate(NASTY, NASTY, 2, "failed", NASTY, 0.0)],
            rotations=[DiscoveryRotation(NASTY, 1e-7, 0.5, 90.0, "failed", NASTY)],
            remarks=[NASTY],
            names=[NASTY, NASTY, NASTY],
            effects=[[0.0, 1.0, float("nan")], [-0.5, 0.0, 1.0]],
            command=NASTY,
        )
    )


def _index() -> str:
    run = index.IndexEntry(NASTY, NASTY, "failed", False, "env", (NASTY,), 1, "./report.json", "")
    search = index.SearchEntry(NASTY, NASTY, "passed", "./search.json", "")
    others = (("other.html", NASTY),)
    page = index.PageEntry("page.html", NASTY, "failed")
    return index.render_index(index.FolderIndex(NASTY, (run,), ((NASTY, NASTY),), others, (search,), (page,)))


HOSTILE: dict[str, Callable[[], str]] = {
    "hostile_curves": _curves,
    "hostile_basis": _basis,
    "hostile_homomorphism": _homomorphism,
    "hostile_search": _discovery,
    "hostile_index": _index,
}
# The files that the page of `hostile_index` names.
NAMED_FILES = ("report.json", "search.json", "other.html", "page.html")


def write_hostile(name: str, folder: Path) -> Path:
    """One of them, in `folder`, beside the files that it links to."""
    for named in NAMED_FILES:
        (folder / named).write_text("", encoding="utf-8")
    path = folder / f"{name}.html"
    path.write_text(HOSTILE[name](), encoding="utf-8")
    return path
