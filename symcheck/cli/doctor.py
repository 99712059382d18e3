"""`symcheck doctor`: versions, optional parts, and which of them work here."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator

import typer

from symcheck.cli.exit_codes import ExitCode

_EXTRAS = {
    "box2d": (("Box2D",), "Box2D environments"),
    "mujoco": (("mujoco",), "MuJoCo environments, mirrors of robots"),
    "minigrid": (("minigrid",), "MiniGrid environments"),
    "distributed": (("distributed",), "sweeps over a Dask cluster"),
    "discover": (("igraph",), "automorphism groups of large tabular MDPs"),
    "onnx": (("onnx", "onnxruntime", "onnxscript"), "ONNX networks"),
    "sb3": (("stable_baselines3",), "Stable-Baselines3 policies"),
    "logs": (("tensorboard", "pyarrow"), "TensorBoard logs, Parquet curves"),
    "wandb": (("wandb",), "Weights & Biases logs of training runs"),
    "games": (("pgx", "pyspiel", "pettingzoo"), "games of Pgx, OpenSpiel and PettingZoo"),
    "jax": (("jax", "gymnax", "brax", "jumanji"), "environments in JAX"),
    "multiagent": (("pettingzoo",), "environments of several agents"),
    "video": (("imageio", "imageio_ffmpeg", "PIL", "pygame"), "episodes as GIF or MP4"),
}


def command() -> None:
    """Print versions, list the optional packages that work, and print how to install the others.

    Example: symcheck doctor
    """
    typer.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})")
    required = list(_required_packages())
    for name, state, _ in required:
        typer.echo(f"  {name:<12} {state}")
    typer.echo("Optional parts:")
    for extra, purpose, state in _extras():
        typer.echo(f"  {extra:<12} {purpose}: {state}")
    typer.echo("What works here:")
    works = [_try(*check) for check in _CHECKS]
    if not (all(works) and all(fine for *_, fine in required)):
        raise typer.Exit(ExitCode.UNUSABLE)


def _required_packages() -> Iterator[tuple[str, str, bool]]:
    """Name, version or problem, and whether it is sufficient, of symcheck and its required dependencies."""
    from packaging.requirements import Requirement

    yield "symcheck", _version("symcheck") or "MISSING: pip install symcheck", _version("symcheck") is not None
    for text in importlib.metadata.requires("symcheck") or ():
        requirement = Requirement(text)
        # The requirement of an extra has a marker that is false without the extra.
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = _version(requirement.name)
        if version is None:
            yield requirement.name, "MISSING: reinstall symcheck", False
        # Accept prereleases: they were installed deliberately.
        elif not requirement.specifier.contains(version, prereleases=True):
            yield (
                requirement.name,
                f"{version}, but symcheck requires {requirement.specifier}: reinstall symcheck",
                False,
            )
        else:
            yield requirement.name, version, True


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# Import in a separate process: a broken binary may raise any exception, or crash.
_IMPORT = """
import importlib, sys
try:
    loaded = [importlib.import_module(name) for name in sys.argv[1:]]
except ModuleNotFoundError:
    sys.exit(3)
except BaseException as error:
    print(f"{type(error).__name__}: {error}")
    sys.exit(4)
print(getattr(loaded[0], "__version__", ""))
"""
_NOT_FOUND, _RAISED = 3, 4


def _extras() -> Iterator[tuple[str, str, str]]:
    """Name, purpose and state of every optional part; they are imported in parallel."""
    started = {extra: _start(modules) for extra, (modules, _) in _EXTRAS.items()}
    for extra, (modules, purpose) in _EXTRAS.items():
        printed, _ = started[extra].communicate()
        # Only the last line is ours: packages may print during import.
        last = printed.decode(errors="replace").strip().rpartition("\n")[2]
        code = started[extra].returncode
        if code == 0:
            state = last or _version(modules[0]) or "works"
        elif code == _NOT_FOUND:
            state = f"pip install 'symcheck[{extra}]'"
        else:
            reason = last if code == _RAISED else f"the process ended with {code}"
            state = f"installed, but importing it fails ({reason}); pip install --force-reinstall 'symcheck[{extra}]'"
        yield extra, purpose, state


def _start(modules: tuple[str, ...]) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-W", "ignore", "-c", _IMPORT, *modules]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _try(name: str, check: Callable[[], str]) -> bool:
    """Run one check of this installation and print the result."""
    try:
        typer.echo(f"  {name:<12} {check()}")
    except Exception as error:  # report any problem of the installation in one line
        typer.echo(f"  {name:<12} FAILS: {type(error).__name__}: {error}")
        return False
    return True


def _environment() -> str:
    from symcheck.api.verify_env import verify_env

    verdict = verify_env("CartPole-v1", "cartpole/mirror", samples=200).verdict
    if verdict != "passed":
        raise RuntimeError(f"CartPole-v1 under cartpole/mirror is {verdict}, but should have passed")
    return "CartPole-v1 verified: passed"


def _network() -> str:
    import torch

    from symcheck.api.verify_net import verify_net

    net = torch.nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        # The mirror negates the observation and exchanges the two actions: W = [w, -w].
        net.weight[1] = -net.weight[0]
    verdict = verify_net(net, "cartpole/mirror", samples=100).verdict
    if verdict != "proved":
        raise RuntimeError(f"an equivariant layer is {verdict}, but should be proved")
    device = f"CUDA: {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "no CUDA device"
    return f"a layer proved equivariant; {device}"


_WHEELS = "https://download.pytorch.org/whl"


def _torch_build() -> str:
    """The build of torch, the parts of it that work here, and how to install another build."""
    import torch

    built = (torch.version.cuda and f"CUDA {torch.version.cuda}") or (torch.version.hip and f"ROCm {torch.version.hip}")
    if not built:
        change = f"for a GPU: pip install --force-reinstall torch --index-url {_WHEELS}/cu126"
        return f"{torch.__version__}, built for the CPU only; {change}"
    if torch.cuda.is_available():
        return f"{torch.__version__}, built for {built}; it runs on {torch.cuda.get_device_name()}"
    change = f"the CPU build is smaller: pip install --force-reinstall torch --index-url {_WHEELS}/cpu"
    return f"{torch.__version__}, built for {built}, but no such device was found; {change}"


_CHECKS = (("verify-env", _environment), ("verify-net", _network), ("torch build", _torch_build))
