"""Results of every kind, made by hand, for the writers to render."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser_tab import BROWSER, Browser

from symcheck.engine.results import Counterexample, PropertyResult, RunResult
from symcheck.statements.statement import free, state
from symcheck_reports import png
from symcheck_reports.basis_model import BasisLayer, BasisModel
from symcheck_reports.curve_model import CurveModel, FailedRun, NetworkCurves, SeedCurve
from symcheck_reports.homomorphism_model import HomomorphismModel, Matching

VERSIONS = {"symcheck": "0.1.0", "gymnasium": "1.4.0", "numpy": "2.4.6", "python": "3.11.2"}
BOUND = {
    "kind": "violation_fraction",
    "value": 3.0e-4,
    "confidence": 0.99,
    "region": "states of rollouts under a uniform policy, of the start distribution, and their images",
}
CLAIM = {
    "observation": ["g: (o0, o1, o2, o3) -> (-o0, -o1, -o2, -o3)"],
    "action": ["g: 0 <-> 1"],
}


def _held(name: str, residual: float | None = None, **changes: object) -> PropertyResult:
    settings: dict[str, object] = {
        "checked": 20000,
        "max_residual": residual,
        "tolerance": None if residual is None else 1.0e-6,
        "unit": "" if residual is None else "max norm over observation coordinates",
        "bound": BOUND,
        "notes": ("The tolerance is 8 ulp of the largest value, times the measured conditioning of the step.",),
        **changes,
    }
    return PropertyResult(name, "passed", "paired", **settings)  # type: ignore[arg-type]


AXIOMS = PropertyResult("group_axioms", "proved", "relations", 2, notes=("Both relations of C2 hold exactly.",))
COORDINATES = (
    {"name": "x", "max_residual": 0.0, "tolerance": 1.0e-6},
    {"name": "x_dot", "max_residual": 2.2e-8, "tolerance": 1.0e-6},
    {"name": "theta", "max_residual": 6.0e-9, "tolerance": 2.0e-7},
    {"name": "theta_dot", "max_residual": 1.2e-7, "tolerance": 1.5e-6},
)

PRECISIONS = (
    {"name": "float64 copy", "max_residual": 3.1e-8, "tolerance": 1.0e-12, "kind": "precision"},
    {"name": "float32 as deployed", "max_residual": 3.0e-8, "tolerance": None, "noise": 4.8e-7, "kind": "precision"},
    {"name": "argmax decisions", "kind": "decisions", "checked": 9951, "violations": 3},
)


@pytest.fixture
def passing_run() -> RunResult:
    """CartPole under its mirror: everything holds."""
    return RunResult(
        "env",
        "CartPole-v1",
        "cart-pole mirror",
        {"name": "C2", "order": 2},
        (
            AXIOMS,
            _held("reward_invariance", 0.0),
            _held("transition_invariance", 1.2e-7, per_coordinate=COORDINATES),
            _held("termination_invariance", 0.0),
            PropertyResult(
                "initial_invariance",
                "passed",
                "distribution",
                2000,
                p_value=0.41,
                bound={"kind": "shift of a coordinate in standard deviations", "value": 0.11, "confidence": 0.9},
                notes=("A permutation test on 2,000 independent resets does not reject.",),
            ),
        ),
        alpha=0.01,
        seed=0,
        duration_s=1.94,
        versions=VERSIONS,
        command="symcheck verify-env CartPole-v1 --html report.html --json report.json",
        claim=CLAIM,
        method_reason="paired: the environment's state can be set, and stepping twice from one state gives one result.",
    )


TRANSITION_FAILURE = PropertyResult(
    "transition_invariance",
    "failed",
    "paired",
    20000,
    violations=19412,
    max_residual=0.062,
    tolerance=1.0e-6,
    unit="max norm over observation coordinates, rad",
    counterexample=Counterexample(
        group_element="g",
        observation=[0.0, 0.5, 0.0, 0.0],
        state=None,
        action=1,
        expected=[-0.01, -0.6945, 0.031, 0.2892],
        actual=[-0.01, -0.6945, 0.0, 0.2892],
        residual=0.031,
        where="theta",
        reproduce="symcheck replay report.json",
        image_observation=[0.0, -0.5, 0.0, 0.0],
        image_action=0,
    ),
    causes=(
        "theta and theta_dot carry different signs in the symmetry",
        state("SYM014", sign="-1", coordinate="observation[2]"),
    ),
    notes=("Shrunk from 214 violating samples to the one with the fewest and smallest non-zero entries.",),
    per_coordinate=tuple(
        {**entry, "max_residual": 0.062 if entry["name"] == "theta" else entry["max_residual"]} for entry in COORDINATES
    ),
)


@pytest.fixture
def failing_run(passing_run: RunResult) -> RunResult:
    """CartPole with a wrong sign: one property fails with a counterexample, one is undecided."""
    return RunResult(
        "env",
        "CartPole-v1",
        "mirror with a wrong sign",
        {"name": "C2", "order": 2},
        (
            AXIOMS,
            _held("reward_invariance", 0.0),
            TRANSITION_FAILURE,
            _held("termination_invariance", 0.0),
            PropertyResult(
                "initial_invariance",
                "undecided",
                "distribution",
                200,
                reason=free("The time was up after 200 resets; --max-time 10 would decide it."),
            ),
        ),
        alpha=0.01,
        seed=3,
        duration_s=2.31,
        versions=VERSIONS,
        command="symcheck verify-env CartPole-v1 --symmetry wrong.toml --seed 3 --html report.html",
        claim={**CLAIM, "observation": ["g: (o0, o1, o2, o3) -> (-o0, -o1, o2, -o3)"]},
        method_reason=passing_run.method_reason,
    )


@pytest.fixture
def failing_network() -> RunResult:
    """A network with one wrong weight in a hidden layer."""
    layers = (
        {
            "name": "",
            "type": "input",
            "representation": "signed permutation, dim 4",
            "residual": 0.0,
            "verdict": "proved",
        },
        {
            "name": "body.0",
            "type": "Linear(4, 128)",
            "representation": "64 regular",
            "residual": 0.0,
            "verdict": "proved",
        },
        {"name": "body.1", "type": "ReLU", "representation": "64 regular", "residual": 0.0, "verdict": "proved"},
        {
            "name": "body.2",
            "type": "Linear(128, 128)",
            "representation": "64 regular, up to one weight",
            "residual": 9.8e-7,
            "verdict": "failed",
        },
        {
            "name": "policy",
            "type": "Linear(128, 2)",
            "representation": "permutation, dim 2",
            "residual": 0.0,
            "verdict": "proved",
        },
        {"name": "value", "type": "Linear(128, 1)", "representation": "trivial", "residual": 0.0, "verdict": "proved"},
    )
    certificate = PropertyResult(
        "layer_certificate",
        "failed",
        "certificate",
        6,
        violations=1,
        max_residual=9.8e-7,
        tolerance=2.4e-7,
        unit="largest weight difference, in units of the largest weight",
        causes=(
            "one weight of body.2 differs from its partner by a relative 1.0e-06: weight[17, 5] against weight[81, 69]",
        ),
        notes=("All other 16,383 weights of the layer match exactly.",),
        location="body.2",
    )
    tested = PropertyResult(
        "network_equivariance",
        "failed",
        "sampled",
        10000,
        violations=8120,
        max_residual=3.1e-8,
        tolerance=1.0e-12,
        unit="output scale",
        counterexample=Counterexample(
            group_element="g",
            observation=[0.0, 0.0, 1.0, 0.0],
            state=None,
            action=None,
            expected={"policy": [0.080490413, -0.08222393], "value": 0.5},
            actual={"policy": [0.080490444, -0.08222393], "value": 0.5},
            residual=3.0e-8,
            where="policy[0]",
            reproduce="symcheck replay net.json",
            image_observation=[0.0, 0.0, -1.0, 0.0],
        ),
        location="body.2",
        notes=("Measured on a float64 copy of the weights.",),
        per_coordinate=PRECISIONS,
    )
    return RunResult(
        "net",
        "policy.py:make",
        "cart-pole mirror",
        {"name": "C2", "order": 2},
        (AXIOMS, certificate, tested),
        alpha=0.01,
        seed=0,
        duration_s=0.83,
        versions={**VERSIONS, "torch": "2.13.0"},
        command="symcheck verify-net policy.py:make --symmetry cartpole/mirror",
        claim={"observation": CLAIM["observation"], "action": CLAIM["action"]},
        method_reason="certificate: every layer could be traced; sampled beside it, as a control.",
        layers=layers,
    )


@pytest.fixture
def approximate_run() -> RunResult:
    """A violation that is accepted, drawn by its environment, with what it can cost."""
    dot = png.data_uri(png.encode_rgb([[[200, 40, 40]] * 8] * 6))
    captions = ("s, given", "g s, the image under g", "after a from s", "after g a from g s")
    accepted = PropertyResult(
        "transition_invariance",
        "passed",
        "paired",
        2000,
        violations=1990,
        max_residual=4.0e-4,
        tolerance=1.0e-6,
        unit="max norm over next-state coordinates",
        bound={
            "kind": "value_gap",
            "value": 0.84,
            "epsilon_reward": 0.0,
            "epsilon_transition": 4.0e-4,
            "discount": 0.99,
            "confidence": 0.99,
        },
        counterexample=Counterexample(
            "g", [0.5], None, 1, [0.25], [0.2504], 4.0e-4, "x",
            image_observation=[-0.5], image_action=0, pictures=tuple((caption, dot) for caption in captions),
        ),
        notes=(state("accepted", size=4.0e-4, limit=1.0e-3, file="accepted.toml", why="the track leans by a degree"),),
        approximate=True,
        accepted_by="baseline",
    )  # fmt: skip
    return RunResult(
        "env", "Leaning-v0", "mirror", {"name": "C2", "order": 2}, (AXIOMS, accepted), 0.01, 0, 0.5, VERSIONS,
        command="symcheck verify-env Leaning-v0 --baseline accepted.toml", claim=CLAIM,
    )  # fmt: skip


@pytest.fixture
def hostile_run() -> RunResult:
    """Names and messages that try to be markup, to move the cursor, to turn the text, and to fill the page."""
    nasty = "<script>alert(1)</script>\"'&]]>\x1b[31m\u202e\ud800\x00" + "A" * 10_000
    failure = PropertyResult(
        "reward_invariance",
        "failed",
        nasty,
        3,
        violations=1,
        max_residual=float("nan"),
        tolerance=0.0,
        unit=nasty,
        counterexample=Counterexample(
            nasty,
            {nasty: ["NaN", nasty]},
            None,
            nasty,
            float("nan"),
            float("inf"),
            float("nan"),
            nasty,
            reproduce=nasty,
        ),
        causes=(nasty,),
        notes=(nasty,),
        location=nasty,
        per_coordinate=({"name": nasty, "max_residual": float("inf"), "tolerance": 0.0},),
    )
    return RunResult(
        "env",
        nasty,
        nasty,
        {"name": nasty, "order": 2},
        (failure, PropertyResult(nasty, "undecided", nasty, 0, reason=free(nasty))),
        0.01,
        0,
        versions={nasty: nasty},
        command=nasty,
        claim={"observation": [nasty], nasty: [nasty]},
        method_reason=nasty,
        layers=({"name": nasty, "type": nasty, "representation": nasty, "residual": float("nan"), "verdict": nasty},),
    )


@pytest.fixture
def several_runs(passing_run: RunResult, failing_run: RunResult, failing_network: RunResult) -> list[RunResult]:
    """Three runs in one report."""
    return [passing_run, failing_run, failing_network]


@pytest.fixture
def many_runs() -> list[RunResult]:
    """200 runs of five properties: 1,000 checks, every fiftieth run failing."""
    runs = []
    for index in range(200):
        failing = index % 50 == 7
        properties = (
            AXIOMS,
            _held("reward_invariance", 0.0),
            TRANSITION_FAILURE if failing else _held("transition_invariance", 1.2e-7, per_coordinate=COORDINATES),
            _held("termination_invariance", 0.0),
            _held("initial_invariance"),
        )
        runs.append(
            RunResult(
                "env",
                f"Task{index}-v0",
                "mirror",
                {"name": "C2", "order": 2},
                properties,
                0.01,
                index,
                1.0,
                VERSIONS,
                f"symcheck verify-env Task{index}-v0",
                CLAIM,
            )
        )
    return runs


@pytest.fixture
def curve_model() -> CurveModel:
    """Two networks, five seeds each, one run stopped early; deterministic."""
    networks = []
    for place, name in enumerate(("equivariant", "mlp")):
        steps = list(range(1000, 21000, 1000))
        curves = [
            SeedCurve(seed, steps, [min(500.0, 20.0 + (s / (9.0 + 6 * place + seed)) * 0.4) for s in steps])
            for seed in range(5)
        ]
        failed = (FailedRun(4, "the loss became NaN at update 12", 8000),) if place else ()
        if failed:
            curves[4] = SeedCurve(4, steps[:8], curves[4].returns[:8])
        networks.append(
            NetworkCurves(
                name,
                0.001,
                curves,
                verdict="failed" if place else "proved",
                verdict_detail="not claimed" if place else "certificate",
                failed_runs=failed,
                parameters=8706,
            )
        )
    return CurveModel(
        "CartPole-v1",
        networks,
        {"algorithm": "PPO", "discount": "0.99"},
        threshold=475.0,
        evaluation="25 episodes every 1,000 steps.",
        command="reference-agents train cartpole",
        versions={"symcheck": "0.1.0"},
        duration_s=75.0,
        notes=("Preset paper.",),
    )


@pytest.fixture
def basis_model() -> BasisModel:
    """Three layers: signed matrices, filters in tiles, and one without a free weight."""
    signed = [[[1.0, 0, 0, 0], [-1.0, 0, 0, 0]], [[0, 0.25, 0, 0], [0, -0.25, 0, 0]]]
    corner = [[float(i % 3 == 0 and j == 0) for j in range(3)] for i in range(12)]
    return BasisModel(
        "cart-pole mirror",
        "C2",
        2,
        [
            BasisLayer("observation -> hidden", "signed", "regular", (2, 4), 4, 8, 1, 2, "exact: rank 4", signed),
            BasisLayer("image -> hidden", "trivial", "regular", (4, 1, 3, 3), 9, 36, 1, 4, "exact: rank 9", [corner]),
            BasisLayer("observation -> value", "signed", "trivial", (1, 4), 0, 4, 1, 1, "exact: rank 0"),
        ],
        command="symcheck basis cartpole/mirror",
        versions=[("symcheck", "0.1.0")],
    )


@pytest.fixture
def homomorphism_model() -> HomomorphismModel:
    """A map of four cells whose diagonal is a symmetry; nothing is done in the last cell."""
    return HomomorphismModel(
        target="2 x 2 map",
        origin="orbits of all symmetries",
        block=[0, 1, 1, 2],
        pairs=8,
        abstract_pairs=5,
        idle=[False, False, False, True],
        edges=[(0, 1, 1.0), (1, 2, 0.25)],
        matchings=[Matching(1, [1, 2], [[[0], [1]], [[1], [0]]])],
        place=[(0, 0), (0, 1), (1, 0), (1, 1)],
        values=[0.5, 0.75, 0.0],
        group="C2",
        order="2",
        command="symcheck discover Map-v0",
        versions=[("symcheck", "0.1.0")],
    )


@pytest.fixture
def homomorphism_graph(homomorphism_model: HomomorphismModel) -> HomomorphismModel:
    """The same without places, so that it is drawn as a graph."""
    edges = [(0, 1, 0.5), (0, 2, 0.5), (1, 3, 1.0)]
    return dataclasses.replace(homomorphism_model, place=None, idle=[False] * 4, state_edges=edges)


@pytest.fixture
def gold() -> Callable[[str, str], None]:
    """Compare text with a gold file; `WRITE_GOLD=1 pytest ...` writes the files anew, to be read before committing."""

    def compare(name: str, text: str) -> None:
        if name.endswith(".html"):
            # Style and script are files of their own, which every page carries; so are their hashes in the policy.
            text = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", text, flags=re.DOTALL)
            text = re.sub(r"sha256-[\w+/=]+", "sha256-", text)
        path = Path(__file__).parent / "gold" / name
        if os.environ.get("WRITE_GOLD") == "1":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text, f"{name} changed; look at it, then run with WRITE_GOLD=1"

    return compare


NPM = shutil.which("npm")
AXE_VERSION = "4.14.1"


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of every command, by name."""
    from written_pages import write_pages

    return write_pages(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.fail("no page was opened: chromium is not installed; install it, or name it in SYMCHECK_BROWSER.")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def desktop(browser: Browser) -> Browser:
    browser.size(1280, 900)
    browser.media()
    return browser


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core; a run that cannot get it fails and says what to do."""
    given = os.environ.get("SYMCHECK_AXE")
    if given is not None:
        return Path(given).read_text(encoding="utf-8")
    remedy = "install npm, or name a copy of axe.min.js in SYMCHECK_AXE"
    if NPM is None:
        pytest.fail(f"accessibility was not checked: axe-core comes from npm, which is not installed; {remedy}.")
    folder = tmp_path_factory.mktemp("axe")
    command = [NPM, "install", f"axe-core@{AXE_VERSION}", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        pytest.fail(f"accessibility was not checked: npm could not fetch axe-core: {done.stderr[-400:]}; {remedy}.")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
