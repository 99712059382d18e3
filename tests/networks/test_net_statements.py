"""Every statement that the engine makes of networks has a sentence, and its sentence finds the fields that it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symcheck.statements.statement import TABLES, as_paragraph, state, table

ROOT = Path(__file__).parents[2]
PROPERTIES = ("network_equivariance", "network_group_axioms", "layer_certificate", "representation_propagation")
SOURCES = [
    *sorted((ROOT / "symcheck" / "engine" / "networks").rglob("*.py")),
    *((ROOT / "properties" / "symcheck_properties" / f"{name}.py") for name in PROPERTIES),
]
FROM_NETWORKS = [code for code in table("causes") if "SYM101" <= code < "SYM201"]  # mirrors and policies follow

# A value for every field that is given by name; what the engine spreads from a mapping is written out in SPREAD.
SAMPLES: dict[str, Any] = {
    **dict.fromkeys(("ulps", "limit", "residual", "noise", "box"), 1e-3),
    **dict.fromkeys(("stride", "size", "padding", "window", "reach", "before", "after", "pairs", "call", "index"), 3),
    **{name: [1, 2] for name in ("units", "inputs", "sizes", "shape", "permutation", "declared")},
    **{name: ["a", "b"] for name in ("layers", "outputs", "families")},
    **dict.fromkeys(("count", "samples"), 3),
    "why": state("SYM154", operation="cumsum"),
    "cause": state("SYM105", square="rot90"),
    "region": state("region_box", box=1.0),
    "roles": {"output": "action"},
}
SAMPLES_OF = {"SYM104": {"before": [8, 8], "after": [10, 10]}}
SPREAD = [
    ("SYM102", {"amounts": [1, 0, 0, 0], "square": "flip_lr"}, "padding (1, 0, 0, 0) never commutes with flip_lr"),
    ("SYM104", {"operation": "nearest upsampling", "uneven": True, "before": [5], "after": [7], "square": "flip_lr"},
     "nearest upsampling from 5 to 7, which repeats entries unevenly, does not commute with flip_lr"),
    ("SYM105", {"square": "flip_lr"}, "this shift of the image does not commute with flip_lr"),
    ("SYM130", {"units": [3], "inputs": []}, "its units are not permuted by the symmetry: no reordering of the rows"),
    ("SYM130", {"layer": "head", "flattened": [8, 5, 5]}, ". Images (8x5x5) are flattened right before this layer"),
    ("SYM131", {"output": "output[1]", "role": "invariant"}, "output[1] does not transform as its role invariant"),
    ("SYM135", {"output": "output", "permutation": [1, 2, 0]}, "the inverse permutation [1, 2, 0]"),
    ("SYM135", {"output": "output"}, "f(L x) = K^-1 f(x) holds (an inverse may be missing"),
    ("SYM138", {"layer": "0", "place": "unit 3, bias", "ulps": 12.0, "tried": 10_000}, "layer 0: unit 3, bias differs"),
    ("SYM138", {"why": state("SYM105", square="rot90"), "tried": 9}, "layer: this shift of the image does not commute"),
    ("SYM139", {"relation": "g g", "group": "C2", "where": "output"}, "does not satisfy a relation of C2"),
    ("coarse_residual", {"residual": 1e-3, "flips": 2, "decisions": 9}, "(2 of 9 decisions flip)"),
    ("decisions_flip", {"artefact": "int8", "noise": 1e-2, "flips": 2, "decisions": 9}, "rounding alone flips 2 of 9 "),
    ("deployed_differs", {"artefact": "int8", "noise": 1e-2, "flips": 0, "decisions": 9}, "of the copy by 1.0e-02"),
    ("deployed_precision", {"deployed": "int8", "residual": 0.1, "noise": 0.1, "flips": 2, "decisions": 9},
     "as deployed (int8): residual 1.0e-01, its own rounding noise 1.0e-01; 2 of 9 argmax decisions flip"),
    ("largest_residual", {"residual": 0.1, "pairs": 1, "coarse": False, "region": "x"}, "1 pair, on a float64 copy"),
    ("operation_at_fault", {"layer": "conv1", "kind": "Conv2d", "source": "a.py:1", "cause": "x"}, "layer conv1 ("),
    ("relation_broken", {"relation": "g g", "group": "C2", "where": "output"}, "the relation g g = identity of C2"),
]  # fmt: skip


def _calls() -> Iterator[tuple[str, str, list[str | None]]]:
    """File and line, code and names of fields of every statement in the sources; None stands for a mapping."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "state"
            codes = [a.value for a in node.args if isinstance(a, ast.Constant)] if named else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and codes:
                yield f"{path.name}:{node.lineno}", str(codes[0]), [k.arg for k in node.keywords]


CALLS = list(_calls())


@pytest.mark.parametrize(("place", "code", "names"), CALLS, ids=[f"{place}-{code}" for place, code, _ in CALLS])
def test_what_the_engine_states_has_a_sentence_for_the_fields_given(
    place: str, code: str, names: list[str | None]
) -> None:
    assert any(code in table(name) for name in TABLES), place
    if None in names or "amounts" in names:
        assert code in {entry[0] for entry in SPREAD}, place
        return
    samples = {**SAMPLES, **SAMPLES_OF.get(code, {})}
    text = state(code, **{name: samples.get(name, name) for name in names if name}).text
    assert text
    assert not text.endswith(".")


@pytest.mark.parametrize(("code", "fields", "phrase"), SPREAD)
def test_sentences_of_gathered_fields_say_what_they_should(code: str, fields: dict[str, Any], phrase: str) -> None:
    assert phrase in state(code, **fields).text


def test_every_cause_about_networks_is_stated_somewhere() -> None:
    assert len(CALLS) > 100  # the search itself finds them
    stated = {code for _, code, _ in CALLS}
    assert [code for code in FROM_NETWORKS if code not in stated] == []


def test_no_rule_refuses_in_free_text() -> None:
    texts = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            reasons = (
                [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("reason", "cause"))] if name else []
            )
            if name in ("NotUnderstoodError", "Opaque", "LayerRecord"):
                reasons = reasons[1:] if name == "LayerRecord" else reasons
                texts += [f"{path.name}:{node.lineno}" for r in reasons if isinstance(r, ast.Constant | ast.JoinedStr)]
    assert texts == []


@pytest.mark.parametrize("layer", ["head", "body.3", "q_net"])
def test_a_layers_name_keeps_its_letters_in_a_paragraph(layer: str) -> None:
    fields = {"kind": "Linear", "source": "a.py:1", "residual": 0.1, "ulps": 9.0, "place": "unit 1", "rounded": False}
    paragraph = as_paragraph([state("layer_difference", layer=layer, **fields)])
    assert paragraph.startswith(f"Layer {layer} (Linear, a.py:1)")
