"""The symmetry group of a board game's rules: rotations and flips of the board that `verify_game` accepts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import symcheck_properties  # noqa: F401  (registers the properties)
from symcheck.api.options import VerifyGameKeywords, VerifyGameOptions
from symcheck.api.report import Report
from symcheck.discovery.game_images import FoundImage, as_function, tried_images
from symcheck.engine.events import Emit, ignore
from symcheck.engine.games.runner import run_game
from symcheck.engine.option_fields import from_keywords, shows_options
from symcheck.errors import SymcheckError
from symcheck.files import write_text
from symcheck.games.game import Game
from symcheck.games.opening import open_game
from symcheck.verdict import Verdict

_SCREENED = 100  # maximum number of positions for a single image; the group is verified on the requested number
_UNVERIFIED = "images found"


@dataclass(frozen=True)
class TriedImage:
    """One rotation or flip of the board, and its verdict.

    Attributes:
        name: the name in words.
        verdict: the verdict of `verify_game` on this image alone; "rejected" if no moves fit it.
        why: the reason why it was rejected, or the properties that fail.
    """

    name: str
    verdict: str
    why: str = ""


@dataclass(frozen=True)
class DiscoveredGame:
    """The result of a search over the rotations and flips of a board.

    Attributes:
        target: the name of the game in reports.
        images: the verified images, without the identity.
        tried: all images that were tried.
        report: the report of `verify_game` on all images together; None if no image was verified.
    """

    target: str
    images: tuple[FoundImage, ...]
    tried: tuple[TriedImage, ...]
    report: Report | None

    @property
    def verdict(self) -> Verdict:
        """The verdict of all images together; failed if all were rejected, undecided if an image is undecided."""
        if self.report is not None:
            return self.report.verdict
        return "undecided" if any(item.verdict == "undecided" for item in self.tried) else "failed"

    @property
    def group(self) -> dict[str, Any]:
        """Name and order of the group; the trivial group if none was verified."""
        holds = self.report is not None and self.verdict in ("passed", "proved")
        return dict(self.report.results[0].group) if self.report and holds else {"name": "trivial", "order": 1}

    @property
    def symmetries(self) -> Callable[[Any, list[float]], list[tuple[Any, Any]]]:
        """The images as a function (board, pi) -> [(board, pi), ...]."""
        return as_function(list(self.images))

    @property
    def source(self) -> str:
        """A Python module with the function `symmetries`, which `verify-game --symmetries` takes."""
        guessed = max((int((~image.seen).sum()) for image in self.images), default=0)
        lines = [
            f'"""Images of {self.target.replace(chr(92), "/")}: {self.group["name"]}, order {self.group["order"]}."""',
            "",
            "import numpy as np",
            "",
            *(
                [f"# {guessed} moves were never legal at the positions tested; their images are guesses."]
                * bool(guessed)
            ),
            "# Entry a of the policy vector goes to place MOVES[k][a].",
            "MOVES = [",
            *(f"    {image.places.tolist()},  # {image.board_map.name}" for image in self.images),
            "]",
            "",
            "",
            "def symmetries(board, pi):",
            "    board, pi = np.asarray(board), np.asarray(pi)",
            "    boards = [" + ", ".join(image.board_map.code for image in self.images) + "]",
            "    images = [(board, pi.tolist())]",
            "    for image, places in zip(boards, MOVES):",
            "        moved = np.empty_like(pi)",
            "        moved[places] = pi",
            "        images.append((image, moved.tolist()))",
            "    return images",
            "",
        ]
        return "\n".join(lines)

    def save(self, path: str | Path) -> Path:
        """Write `source`.

        Raises:
            SymcheckError: nothing was verified, or the path cannot be written.
        """
        if self.verdict not in ("passed", "proved"):
            raise SymcheckError(f"no symmetry of {self.target} was verified.", where="save")
        return write_text(path, self.source)

    def to_text(self) -> str:
        """One line per image, and the group."""
        width = max((len(item.name) for item in self.tried), default=0)
        lines = [f"{item.verdict:<10} {item.name.ljust(width)}  {item.why}".rstrip() for item in self.tried]
        end = f"{self.group['name']}, order {self.group['order']}: all images together"
        if self.report is None:
            end = "no rotation or flip of the board was verified as a symmetry of the rules"
        elif self.verdict not in ("passed", "proved"):
            end = "all images together: " + ", ".join(p.name for p in self.report if p.verdict == self.verdict)
        tried = f"{len(self.tried)} rotations and flips of the board were tried"
        return "\n".join([f"{self.target}: {tried}", "", *lines, "", f"{self.verdict:<10} {end}", ""])


@shows_options(VerifyGameOptions)
def discover_game(game: Any, *, emit: Emit | None = None, **options: Unpack[VerifyGameKeywords]) -> DiscoveredGame:
    """Search a board game for symmetries of its rules among the rotations and flips of the board.

    The permutation of the policy vector follows from the legal moves and the next boards. Every image with such a
    permutation is verified separately, then all of these together on new games. An image is claimed only if
    `verify_game` accepts it.

    Args:
        game: as for `verify_game`; the symmetries that it claims are not used.
        emit: receives the events of the last verification, that of all images together.
        **options: as for `verify_game`.

    Returns:
        The verified images, as a function and as a Python module.

    Raises:
        SymcheckError: the game cannot be played, or an option cannot be used.

    Example:
        >>> import numpy as np
        >>> class Row:  # whoever fills an end of three cells wins
        ...     def getInitBoard(self): return np.zeros(3, int)
        ...     def getActionSize(self): return 3
        ...     def getNextState(self, board, player, a): return np.where(np.arange(3) == a, player, board), -player
        ...     def getValidMoves(self, board, player): return board == 0
        ...     def getGameEnded(self, board, player): return -1 if board[0] or board[2] else 0
        ...     def getCanonicalForm(self, board, player): return board * player
        >>> found = discover_game(Row)
        >>> found.verdict, found.group["name"], found.symmetries(np.array([1, 0, 0]), [0.7, 0.2, 0.1])[1][1]
        ('proved', 'C2', [0.1, 0.2, 0.7])
    """
    chosen: VerifyGameOptions = from_keywords(VerifyGameOptions, options, caller="discover_game")
    target, adapter = game, chosen.adapter
    opened = _open_with(target, adapter, [])
    screening = dataclasses.replace(chosen, samples=min(_SCREENED, chosen.samples))
    holds: list[FoundImage] = []
    tried: list[TriedImage] = []
    for board_map, image in tried_images(opened, chosen.seed):
        if isinstance(image, str):
            tried.append(TriedImage(board_map.name, "rejected", image))
            continue
        # Images including the original position, because a single quarter turn is not a group.
        alone = _verify_images(_open_with(target, adapter, [image], original=False), screening, ignore)
        bad = ", ".join(item.name for item in alone if item.verdict not in ("passed", "proved"))
        tried.append(TriedImage(board_map.name, alone.verdict, bad and f"{bad} {alone.verdict}"))
        if alone.verdict in ("passed", "proved"):
            holds.append(image)
    report = None
    if holds:
        # Use new games, because the images were selected on the earlier ones.
        accepting = dataclasses.replace(chosen, seed=chosen.seed + 1)
        report = _verify_images(_open_with(target, adapter, holds), accepting, emit or ignore)
    return DiscoveredGame(opened.label, tuple(holds), tuple(tried), report)


def _open_with(target: Any, adapter: str | None, images: list[FoundImage], *, original: bool = True) -> Game:
    game = open_game(target, adapter=adapter, symmetries=as_function(images, original=original))
    game.symmetries_label = _UNVERIFIED
    return game


def _verify_images(game: Game, options: VerifyGameOptions, emit: Emit) -> Report:
    return Report([run_game(game, options=options, target=game.label, command="", emit=emit)])
