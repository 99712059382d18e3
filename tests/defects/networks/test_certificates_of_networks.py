"""What is proved of a correct network gets a certificate that is accepted; a faulty network gets none."""

from __future__ import annotations

import pytest
from certificate_mutants import certificate_of
from correct_networks import CORRECT
from faulty_networks import FAULTS
from subjects import Correct, Fault

from symcheck.certificate_checker import ULP_CLAIM
from symcheck.engine.networks.graph.nodes import NoCertificateError

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")
EACH_DAY = (
    "layer norm",
    "residual with a zero branch",
    "duplicate units",
    "odd hardtanh",
    "rotation by 120 degrees",
    "affine mirror",
    "grid world, shared batch norm",
    "flip, grouped convolution",
    "in place",
    "group norm that splits orbits",
    "flip, stride 2 on an even size",
    "two actions exchanged",
    "ReLU on signs",
    "a bias in an odd network",
)
"""What the fast tier tries: one network or fault of each kind of node."""


def tiers(table: list) -> list:
    marks = {True: (), False: (pytest.mark.slow,)}
    return [pytest.param(item, id=item.name, marks=marks[item.name in EACH_DAY]) for item in table]


@pytest.mark.parametrize("subject", tiers([item for item in CORRECT if item.verdict == "proved"]))
def test_a_proved_network_has_a_certificate(subject: Correct) -> None:
    document = certificate_of(subject.net(), subject.symmetry(), **subject.options)
    assert any(node["op"] == "linear" for node in document["nodes"])


@pytest.mark.parametrize("subject", tiers(FAULTS))
def test_a_faulty_network_has_none(subject: Fault) -> None:
    try:
        document = certificate_of(subject.net(), subject.symmetry(), **subject.options)
    except NoCertificateError:
        return
    # weights that are only rounded hold what the certificate then says
    assert subject.options.get("strict")
    assert document["claim"]["tolerance"] == ULP_CLAIM
