"""Finding codes: every cause that an engine can say has one, and each is explained."""

import ast
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from symcheck import findings
from symcheck.cli import main
from symcheck.errors import OptionError
from symcheck_reports import words

ROOT = Path(__file__).parents[2]

# Causes as engines said them of planted faults; texts that changed since then must be changed here too.
SAID = {
    "SYM001": [
        "mirror is declared of order 2 but L(L(s)) != s (it has order 4)",
        "K(K(a)) != a (it has order 4)",
        "the map of the internal state, applied 3 times, is not the identity (it has order 6)",
        "the action map is not of the order that C2 asks for",
    ],
    "SYM002": ["the relation r s r s = e fails on the action"],
    "SYM003": ["the MDP equations themselves hold for this map: only the group law is broken"],
    "SYM004": [
        "the MDP equations fail for this map too: reward, transition",
        "whether the MDP equations hold for this map is undecided: reward",
    ],
    "SYM010": ["K = identity would pass: with the actions unchanged all equations hold"],
    "SYM011": [
        "the action map is the inverse of the right one: with K replaced by its inverse all equations hold",
        "equivariant to the inverse action: f(L x) = K^-1 f(x) holds; the inverse permutation [3, 0, 1, 2] is the one "
        "that holds (a missing inverse, or actions listed in the other direction)",
    ],
    "SYM012": [
        "with the action map [1, 0] all equations hold",
        "action order: the permutation [0, 3, 1, 4, 2] holds instead of the declared [0, 2, 3, 4, 1]",
    ],
    "SYM013": [
        "with the other sign on action[0] all equations hold",
        "with all actions negated once more all equations hold",
        "the sign of every output component is reversed: f(L x) = -K f(x) holds",
    ],
    "SYM014": ["holds with sign -1 on observation[0]", "the claim holds with sign +1 on input component 3"],
    "SYM020": ["the difference of rewards is -0.002 times next observation[0]: a term that g does not keep"],
    "SYM021": [
        "only at the threshold: next observation[0] = +2 terminates and -2 does not; >= on one side and > on the other"
    ],
    "SYM022": ["next state (-1.00158, -0.233498) terminates, next state (-0.954877, 0.233498) does not"],
    "SYM023": ["only where next observation[0] stops at its lower bound -1.2 on one side and not on the other"],
    "SYM024": ["the image of the state is outside the observation space: observation[0] = -1.41929 is below -1.2"],
    "SYM025": [
        "FlattenObservation put the parts in the flattened key order a, b (2): was the map written for another?"
    ],
    "SYM026": ["it breaks everywhere: in all states and for all actions tested"],
    "SYM027": ["it breaks for 12 of 28 (s, a, g)", "it breaks in 0.598% of the pairs tested"],
    "SYM040": [
        "the start distribution is not symmetric; the dynamics are judged on their own",
        "the start distribution is not symmetric in x, v; the dynamics are judged on their own",
    ],
    "SYM041": ["centre -0.5009 of observation[0] is not -0.5236, which the map keeps"],
    "SYM042": [
        "a has mean 0.1, b mean 0.3, yet they are exchanged: check their order",
        "observation[1] has standard deviation 0.295, observation[0] 0.208, yet the map sends one to the other",
    ],
    "SYM043": [
        "the noise is not symmetric, or the mean dynamics are not",
        "reward: the mean of reward is shifted by 0.04 (0.08 between the two sides); about 1979 pairs find this with "
        "90% power",
        "transition: skew of observation[1] differs between T(mirror s, mirror a) and mirror T(s, a); about 96 pairs "
        "find this with 90% power",
        "differs in observation[0], observation[1]",
    ],
    "SYM050": [
        "transition: mean of next observation[0] differs between episodes and their images under mirror",
        "so does mean of next observation[1]",
        "states cannot be set here, so no single counterexample is shown: register state access to get one",
    ],
    "SYM051": ["pairs of set states show no violation, but 49 of 60 states behave differently when they are set"],
    "SYM101": [
        "conv1: stride 2 does not commute with rot90 at this size: (20 + 2 - 3) = 19 is not divisible by 2; sizes that "
        "would: 19, 21 (every 2)"
    ],
    "SYM102": [
        "0: padding (1, 0, 0, 0) never commutes with flip_lr",
        "conv1: padding 1 before and 2 after never commutes with rot90",
        "3: output padding on one side (or unequal settings) never commutes with flip_lr",
    ],
    "SYM103": ["conv: windows that differ along height and width do not commute with rot90"],
    "SYM104": [
        "0: a shift of the image never commutes with flip_lr",
        "middle: interpolate from 8x8 to 10x10 does not commute with rot90; sizes that would: 10",
    ],
    "SYM110": [
        "middle: plain batch_norm over group channels: its shift differs between channels that the action exchanges; "
        "share statistics and affine parameters along the group axis"
    ],
    "SYM111": [
        "position: the shift differs between entries that the action exchanges (a positional embedding or a mean image "
        "does this)"
    ],
    "SYM112": ["middle: group_norm over entries are combined in blocks that the action does not carry into each other"],
    "SYM113": ["1: relu is not odd, and the action negates entries before it"],
    "SYM120": ["not followed beyond 2: takes entries that the action exchanges with entries left out"],
    "SYM130": [
        "hidden: its units are not permuted by the symmetry: no order of rows of [W L, b] gives [W, b]",
        "conv: its filters are not permuted by the symmetry",
        "not followed beyond 3: no permutation of the outputs of hidden carries the symmetry",
    ],
    "SYM131": [
        "value: output[1] does not move as its invariant claim says",
        "4: output moves by a permutation other than its action claim says",
    ],
    "SYM132": [
        "the output does not move at all: f(L x) = f(x) holds; its action map would be the identity",
        "output: a constant output that the action moves",
    ],
    "SYM150": ["the network is stochastic: dropout, noise layers or sampling inside forward"],
    "SYM151": ["not followed beyond forward (nets.py:684): cumsum is not understood"],
    "SYM152": ["the network divides by zero, or takes a root or logarithm outside its domain, on this input"],
}


def run(*arguments):
    result = CliRunner().invoke(main.app, ["explain", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("code", SAID)
def test_causes_that_engines_said_of_planted_faults_have_their_code(code):
    assert [findings.code_of(text) for text in SAID[code]] == [code] * len(SAID[code])


def test_every_code_is_met_by_a_planted_fault():
    assert list(SAID) == list(findings.findings())


def _templates(tree, *, diagnosing):
    """Texts of causes in a module: what is passed, assigned or yielded as one, or appended to a list of them."""
    for node in ast.walk(tree):
        values = []
        if isinstance(node, ast.keyword) and node.arg in ("cause", "causes"):
            values = [node.value]
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [getattr(t, "attr", getattr(t, "id", "")) for t in targets]
            values = [node.value] if set(names) & {"cause", "causes"} else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            values = node.args if getattr(node.func.value, "id", "") == "causes" else []
        elif isinstance(node, ast.Yield) and diagnosing:
            values = [node.value]
        for value in values:
            yield from filter(None, (_text(part) for part in _alternatives(value)))


def _alternatives(value):
    if isinstance(value, ast.IfExp):
        return [*_alternatives(value.body), *_alternatives(value.orelse)]
    if isinstance(value, ast.Tuple | ast.List):
        return [part for item in value.elts for part in _alternatives(item)]
    return [value]


def _text(value):
    """The text with 1 in the place of every number or name that is filled in."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in value.values)
    return None


def _written():
    folders = (ROOT / "symcheck" / "engine", ROOT / "properties" / "symcheck_properties")
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (
            (path.relative_to(ROOT), text)
            for text in _templates(tree, diagnosing=path.stem == "diagnosis")
            if len(re.sub(r"\W|1", "", text)) > 12
        )


def test_every_cause_written_in_the_engines_has_a_code():
    written = list(_written())
    assert len(written) > 15  # the search itself finds them
    named = {"1 over 1": "group_norm over 1"}  # the kind of normalisation is filled in
    missing = [(str(path), text) for path, text in written if findings.code_of(named.get(text, text)) is None]
    assert missing == []


def test_a_cause_that_nobody_knows_has_no_code_and_is_shown_as_it_is():
    assert findings.code_of("the moon was full") is None
    assert words.causes_lettered(["the moon was full", SAID["SYM014"][0]]) == [
        "(a) the moon was full",
        "(b) [SYM014] holds with sign -1 on observation[0]",
    ]


@pytest.mark.parametrize("finding", findings.findings().values(), ids=lambda f: f.code)
def test_every_finding_says_what_it_means_what_causes_it_and_what_helps(finding):
    assert re.fullmatch(r"SYM\d{3}", finding.code)
    assert 10 < len(finding.title) <= 80
    assert finding.meaning.endswith(".")
    assert finding.causes
    assert finding.remedies
    code, output = run(finding.code)
    assert code == 0
    assert finding.title in output
    assert all(line == line.rstrip() and len(line) <= 100 for line in output.splitlines())


def test_without_a_code_all_are_listed():
    code, output = run()
    assert code == 0
    assert [line[:6] for line in output.splitlines()] == list(findings.findings())


@pytest.mark.parametrize("written", ["SYM014", "sym14", "14", " SYM014 "])
def test_codes_may_be_written_short(written):
    assert findings.explain(written).code == "SYM014"


@pytest.mark.parametrize("written", ["SYM015", "SYM", "stride", ""])
def test_an_unknown_code_exits_2_with_a_suggestion(written):
    code, output = run(written)
    assert code == 2
    assert "no finding has the code" in output
    assert "symcheck explain" in output
    with pytest.raises(OptionError):
        findings.explain(written)


def test_a_failed_run_shows_codes_that_can_be_explained():
    result = CliRunner().invoke(
        main.app,
        ["verify-net", str(ROOT / "examples" / "cartpole_networks.py:mlp"), "--symmetry", "cartpole/mirror"],
    )
    assert result.exit_code == 1
    codes = re.findall(r"\[(SYM\d{3})\]", result.output)
    assert codes
    assert all(code in findings.findings() for code in codes)
