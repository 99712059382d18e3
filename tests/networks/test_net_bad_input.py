"""Mistakes end in one message with what was expected, what was given, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from net_catalogue import GridNet, Lambda, mirror, mirror_mlp, turn
from torch import nn

from symcheck.engine.networks.options import NetOptions
from symcheck.engine.networks.runner import run_net
from symcheck.engine.networks.subject.targets import load_checkpoint, resolve_network
from symcheck.errors import OptionError, SpecError, SymcheckError, TargetError


def test_an_output_that_fits_nothing_gives_both_sizes() -> None:
    with pytest.raises(SpecError, match=r"3 entries.*dimension 2.*dimension 1"):
        run_net(nn.Linear(4, 3), mirror())


def test_a_symmetry_of_another_length_gives_both_sizes() -> None:
    with pytest.raises(SpecError, match=r"4 components.*takes 6"):
        run_net(nn.Linear(6, 2), mirror())


def test_a_network_that_widens_its_input_first_is_no_mismatch() -> None:
    net = Lambda(lambda x, n: n(torch.cat([x, x], -1)[:, :4]), mirror_mlp())
    assert run_net(net, mirror()).verdict == "proved"
    wide = Lambda(lambda x, n: n(torch.cat([x, x.abs()], -1)), nn.Linear(8, 2))
    assert run_net(wide, mirror()).verdict == "failed"


def test_the_shape_of_images_must_be_given() -> None:
    with pytest.raises(SpecError, match="--input-shape"):
        run_net(GridNet(), turn())


def test_an_example_input_gives_the_shape() -> None:
    net = GridNet()
    net.register_buffer("example_input", torch.zeros(1, 1, 21, 21))
    assert run_net(net, turn(), options=NetOptions(samples=100)).verdict == "proved"


def test_a_turn_of_a_rectangle_is_refused() -> None:
    with pytest.raises(SpecError, match="square images"):
        run_net(GridNet(), turn(), options=NetOptions(input_shape=(1, 21, 23)))


def test_a_wrong_input_shape_shows_what_the_network_raised() -> None:
    with pytest.raises(TargetError, match=r"raised RuntimeError.*--input-shape"):
        run_net(GridNet(), turn(), options=NetOptions(input_shape=(2, 21, 21)))


def test_a_network_that_raises_on_some_inputs_is_an_error_that_names_it() -> None:
    def picky(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        if (x > 5).any():
            raise ValueError("out of range")
        return net(x)

    with pytest.raises(TargetError, match=r"ValueError: out of range on the input \[.*\] \(shape \(4,\)\)") as caught:
        run_net(Lambda(picky, mirror_mlp()), mirror())
    shown = str(caught.value).split("on the input [")[1].split("]")[0]
    assert max(float(number) for number in shown.split(",")) > 5, "the input shown is one that it refuses"


def test_a_network_that_raises_on_large_batches_only_is_told_how_large() -> None:
    def narrow(x: torch.Tensor, net: nn.Module) -> torch.Tensor:
        if len(x) > 100:
            raise ValueError("too many")
        return net(x)

    with pytest.raises(TargetError, match=r"ValueError: too many on 1\d\d inputs of shape"):
        run_net(Lambda(narrow, mirror_mlp()), mirror())


def test_a_distribution_says_how_to_name_its_parameters() -> None:
    net = Lambda(lambda x, n: torch.distributions.Categorical(logits=n(x)), mirror_mlp())
    with pytest.raises(TargetError, match=r"Categorical.*(probs|logits)"):
        run_net(net, mirror())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "--samples"),
        ({"mode": "evaluate"}, "--mode"),
        ({"dtype": "float31"}, "--dtype"),
        ({"input_shape": (0,)}, "--input-shape"),
        ({"noise_seed": -1}, "--noise-seed"),
        ({"alpha": 1.0}, "--alpha"),
        ({"max_time": 0.0}, "--max-time"),
    ],
)
def test_options_out_of_range_name_the_option(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        NetOptions(**options)


def test_an_unknown_device_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="--device"):
        run_net(mirror_mlp(), mirror(), options=NetOptions(device="gpu"))


def test_outputs_must_be_one_per_output() -> None:
    with pytest.raises(SpecError, match=r"2 roles, one for each output \(output\[0\], output\[1\]\), got 1"):
        run_net(mirror_mlp(value=True), mirror(), options=NetOptions(outputs=("action",)))


def test_an_unknown_role_suggests_the_nearest() -> None:
    with pytest.raises(SpecError, match="Did you mean 'invariant'"):
        run_net(mirror_mlp(), mirror(), options=NetOptions(outputs=("invariante",)))


def test_a_factory_that_raises_or_returns_no_module_is_an_error() -> None:
    with pytest.raises(TargetError, match="ZeroDivisionError"):
        resolve_network(lambda: 1 / 0)
    with pytest.raises(TargetError, match="got int"):
        resolve_network(lambda: 3)
    with pytest.raises(TargetError, match="no_such"):
        resolve_network("no_such_module_anywhere:make")
    with pytest.raises(TargetError, match="is not a file"):
        resolve_network("network")


def test_files_are_found_with_their_attributes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from torch import nn\ndef make():\n    return nn.Linear(4, 2)\ninstance = make()\nnumber = 3\n")
    assert isinstance(resolve_network(f"{file}:make"), nn.Linear)
    assert isinstance(resolve_network(f"{file}:instance"), nn.Linear)
    with pytest.raises(TargetError, match="got int"):
        resolve_network(f"{file}:number")
    with pytest.raises(TargetError, match="does not define 'made'"):
        resolve_network(f"{file}:made")
    with pytest.raises(TargetError, match=r"file\.py:name"):
        resolve_network(str(file))


def test_checkpoints_are_loaded_or_refused_with_the_reason(tmp_path: Path) -> None:
    net, other = mirror_mlp(), mirror_mlp(seed=1)
    good, corrupt, wrong = tmp_path / "good.pt", tmp_path / "corrupt.pt", tmp_path / "wrong.pt"
    torch.save({"model_state_dict": net.state_dict(), "step": 3}, good)
    load_checkpoint(other, good)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    corrupt.write_bytes(good.read_bytes()[:200])
    with pytest.raises(TargetError, match="cannot be read"):
        load_checkpoint(other, corrupt)
    torch.save(nn.Linear(2, 2).state_dict(), wrong)
    with pytest.raises(TargetError, match="does not fit the network"):
        load_checkpoint(other, wrong)
    with pytest.raises(TargetError, match="no such file"):
        load_checkpoint(other, tmp_path / "absent.pt")


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated:DeprecationWarning")
def test_torchscript_files_are_tested(tmp_path: Path) -> None:
    script = tmp_path / "net.pt"
    torch.jit.save(torch.jit.trace(mirror_mlp(), torch.zeros(2, 4)), script)
    result = run_net(resolve_network(str(script)), mirror(), options=NetOptions(samples=200))
    assert result.verdict in ("passed", "proved")
    off = mirror_mlp()
    with torch.no_grad():
        off[2].weight[3, 5] *= 1.001
    torch.jit.save(torch.jit.trace(off, torch.zeros(2, 4)), script)
    assert run_net(resolve_network(str(script)), mirror(), options=NetOptions(samples=200)).verdict == "failed"


def test_exported_files_are_proved_whether_they_take_batches_or_not(tmp_path: Path) -> None:
    file = tmp_path / "net.pt2"
    batch = {0: torch.export.Dim("batch", min=1)}
    off = mirror_mlp()
    with torch.no_grad():
        off[2].weight[3, 5] *= 1 + 1e-6
    for size, shapes in ((3, (batch,)), (1, None)):
        for net, verdict, places in ((mirror_mlp(), "proved", set()), (off, "failed", {"2"})):
            torch.export.save(torch.export.export(net, (torch.zeros(size, 4),), dynamic_shapes=shapes), file)
            result = run_net(resolve_network(str(file)), mirror(), options=NetOptions(samples=200))
            assert result.verdict == verdict
            assert {p.location for p in result.properties if p.verdict == "failed"} == places


def test_nothing_can_be_reached_through_an_object_that_is_no_network() -> None:
    with pytest.raises(SymcheckError):
        resolve_network(3)
