"""The search if states can be set: from structure to single transitions to the observation map."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from symcheck.discovery.actions import ActionProbes, list_few, matching_action_map, try_actions
from symcheck.discovery.automorphisms import MOST_MAPS, Found, automorphisms, exchanges
from symcheck.discovery.boards import board_maps
from symcheck.discovery.centres import Centre, centres, is_reached, middle_of_whole
from symcheck.discovery.laboratory import Laboratory
from symcheck.discovery.maps import Candidate, SignedMap
from symcheck.discovery.mixed_effects import with_mixed
from symcheck.discovery.moments import Played, with_moments
from symcheck.discovery.observations import (
    NoObservationMapError,
    Sightings,
    is_image,
    look_around,
    matching_observation_map,
    matching_picture_map,
)
from symcheck.discovery.pairs import keeps_pairs, with_pairs
from symcheck.discovery.result import Sensitivities, Trial
from symcheck.discovery.robots import NamedMirror, named_mirrors
from symcheck.discovery.screening import Cases, Screened, draw_cases, screen
from symcheck.discovery.structure import Structure, effects_at, sensitivities_of, without_effects
from symcheck.entries.forms import parse_entry
from symcheck.errors import TargetError
from symcheck.symmetry.text import describe

_MOST_REMARKED = 8
_MOST_LISTED = 4  # up to this number of state coordinates, all (at most 384) signed permutations are tried
_MOST_RANDOM = 48  # maximum number of maps per centre if steps are random: each costs some two thousand steps
_UNSEEN = "it changes neither observations nor actions"
_REFUSES = "the environment rejects images"
_PAIRS = "changing two coordinates together has a different effect from changing their images"
_BY_NAME = "mirrors derived from names in a model"
_SEARCHING = 0.4  # of the time budget; the rest is for verification


@dataclass
class Proposals:
    """The result of a search, for verification.

    Attributes:
        candidates: the candidates to verify.
        refused: trials of the candidates that the screening rejected.
        space: the number of maps, and their description.
        structured: the number of maps that the structure allows.
        tried: the number of maps that were compared with transitions.
        compared: the comparison, in words.
        remarks: further remarks.
        sensitivities: the table that pruned the search.
        complete: whether no limit was reached.
        interrupted: whether the search was stopped.
        forms: the forms of maps searched, and whether all maps of the form were listed.
        least_samples: samples for each generator below which verification could miss too much; 0 for any.
    """

    candidates: list[Candidate] = field(default_factory=list)
    refused: list[Trial] = field(default_factory=list)
    space: tuple[str, str] = ("", "")
    structured: int = 0
    tried: int = 0
    compared: str = "single transitions"
    remarks: list[str] = field(default_factory=list)
    sensitivities: Sensitivities | None = None
    complete: bool = True
    interrupted: bool = False
    forms: dict[str, bool] = field(default_factory=dict)
    least_samples: int = 0


def identity_on(lab: Laboratory) -> Candidate:
    """The identity on states, actions and observations."""
    actions = lab.values.total if lab.values is not None else int(np.prod(lab.action_space.shape or (1,)))
    width = lab.stepper.codec.coordinates.dim
    moved = SignedMap.identity(width if lab.kind == "black box" else lab.dim)
    return Candidate(moved, SignedMap.identity(actions), SignedMap.identity(width))


def propose(lab: Laboratory) -> Proposals:
    """Search the signed permutations of the state, with offsets about equilibria.

    Args:
        lab: an environment whose states can be set.

    Returns:
        Candidates for verification, and the rejected ones.

    Raises:
        TargetError: the environment cannot be stepped from states that it reached itself.
    """
    return _Search(lab).run()


class _Search:
    def __init__(self, lab: Laboratory) -> None:
        self.lab = lab
        self.found = Proposals(space=size_of(lab))
        self.cases: Cases = draw_cases(lab)
        self.probes: ActionProbes = try_actions(lab, self.cases.scale)
        self.sightings: Sightings | None = None
        # The identity counts as tried, because it is not a candidate.
        self.seen = {self._moving(SignedMap.identity(lab.dim))}
        self.mirrors: list[NamedMirror] = named_mirrors(lab)
        self.structures: dict[bytes, tuple[Structure, Found]] = {}
        self.played: Played = {}
        self.labels = {self._moving(mirror.state): mirror.label for mirror in self.mirrors}

    def run(self) -> Proposals:
        try:
            self._search()
        except KeyboardInterrupt:
            self.found.complete, self.found.interrupted = False, True
        return self.found

    def _search(self) -> None:
        self._remark_identical_actions()
        if self.lab.was_cut_short:
            self.found.complete = False
            self.found.remarks.append(
                f"the time budget ended the collection of states after {len(self.lab.states)}; coordinates that did "
                "not vary among these states were left fixed; raise --max-time"
            )
        points = centres(self.lab)
        for form, state_map in board_maps(self.lab):
            if not self.lab.in_time(_SEARCHING):
                self.found.complete = False
                break
            self.found.forms.setdefault(form, True)
            if self._moving(state_map) not in self.seen:
                self.seen.add(self._moving(state_map))
                self._try_board(state_map, form, points[0])
        for centre in points:
            if not self.lab.in_time(_SEARCHING):
                self.found.complete = False
                break
            self._about(centre)
        self._about_half_numbers()
        for mirror in self.mirrors:
            self._by_name(mirror)
        if not self.found.structured and not self.lab.shows_state:
            self.found.remarks.append(
                "maps of the state were searched, not maps of the observation alone; if you know a map of the "
                "observation, write it down and check it with verify-env"
            )

    def _try_board(self, state_map: SignedMap, form: str, centre: Centre) -> None:
        """A map of a board, unless pairs of cells refute it: a shift preserves single effects, but not diagonals."""
        if not keeps_pairs(self._structure_at(centre)[0], state_map):
            self._refuse(Candidate(state_map, SignedMap.identity(1), state_map, form=form), _PAIRS, _PAIRS)
            return
        self.found.structured += 1
        self._try(state_map, form)

    def _structure_at(self, centre: Centre) -> tuple[Structure, Found]:
        """The effects at a centre and the maps that preserve them, measured once.

        If the centre is no state, effects there need not be those of states: then only moments of episodes are used.
        """
        key = centre.point.tobytes()
        if key not in self.structures:
            try:
                structure = effects_at(self.lab, centre.point)
                self._describe_effects(structure)
            except TargetError:
                structure = without_effects(self.lab, centre.point)
            if not is_reached(self.lab, centre):
                structure = without_effects(self.lab, centre.point)
            self.structures[key] = self._refine(structure)
        return self.structures[key]

    def _refine(self, structure: Structure) -> tuple[Structure, Found]:
        """The structure, refined by further measurements if it leaves too many maps, and the maps that it leaves."""
        if not structure.has_effects:
            structure = with_moments(self.lab, structure, self.played) or structure
            return structure, automorphisms(structure)
        left = automorphisms(structure)
        most = _MOST_RANDOM if self.lab.kind == "stochastic" else MOST_MAPS
        for refine in (with_pairs, with_mixed, partial(with_moments, played=self.played)):
            if left.complete and len(left.maps) <= most:
                break
            if (refined := refine(self.lab, structure)) is not None:
                structure, left = refined, automorphisms(refined)
        return structure, left

    def _describe_effects(self, structure: Structure) -> None:
        if self.found.sensitivities is None:
            prefix = "observation" if self.lab.shows_state else "state"
            self.found.sensitivities = sensitivities_of(structure, prefix, self.lab.values)
            self._remark_fixed(structure)

    def _about(self, centre: Centre) -> None:
        structure, left = self._structure_at(centre)
        searched = "observation" if self.lab.shows_state else "state"
        measured = "the effects measured there" if structure.has_effects else "moments of episodes"
        form = f"signed permutations of the {searched} that preserve {centre.what} and {measured}"
        self.found.forms[form] = left.complete
        listed = left.maps
        if not left.complete:
            # The first of very many maps are not representative: use one map for each possible image of a coordinate.
            listed = exchanges(structure)
            self.found.complete = False
            source = f"the structure at {centre.what} leaves" if structure.has_effects else "moments of episodes leave"
            self.found.remarks.append(
                f"{source} too many maps to try; {len(listed)} were tried, one for each possible image of a coordinate"
            )
        maps = [SignedMap.about(index, sign, centre.point) for index, sign in listed]
        new = [each for each in maps if self._moving(each) not in self.seen]
        # About a model's reference pose, only linear maps are allowed (`Centre.affine`).
        fresh = [each for each in new if centre.affine or not any(each.offset)]
        self.found.structured += len(fresh)
        for at, state_map in enumerate(fresh):
            self.seen.add(self._moving(state_map))
            self.lab.progress(at, len(fresh), "comparing single transitions")
            if limit := self._limit_of(at):
                self.found.complete = self.found.forms[form] = False
                self.found.remarks.append(f"{limit} left {len(fresh) - at} maps untried")
                break
            self._try(state_map, form)

    def _limit_of(self, tried: int) -> str:
        """The limit that ended the test of single maps, in words; "" if none was reached."""
        if not self.lab.in_time(_SEARCHING):
            return "the time budget"
        many = self.lab.kind == "stochastic" and tried >= _MOST_RANDOM
        return f"a limit of {_MOST_RANDOM} maps for environments with random steps" if many else ""

    def _about_half_numbers(self) -> None:
        """All maps about a centre halfway between integers, which is not a state, if there are few of them."""
        lab = self.lab
        if not lab.is_whole or not 1 <= lab.dim <= _MOST_LISTED or (centre := middle_of_whole(lab)).is_probed:
            return
        form = f"signed permutations that preserve {centre.what}"
        self.found.forms[form] = True
        for index in itertools.permutations(range(lab.dim)):
            for sign in itertools.product((1, -1), repeat=lab.dim):
                state_map = SignedMap.about(index, sign, centre.point)
                # A map with a non-integer offset exchanges coordinates of unequal range.
                if self._moving(state_map) in self.seen or any(x != round(x) for x in state_map.offset):
                    continue
                self.seen.add(self._moving(state_map))
                if not lab.in_time(_SEARCHING):
                    self.found.complete = self.found.forms[form] = False
                    return
                self.found.structured += 1
                self._try(state_map, form)

    def _by_name(self, mirror: NamedMirror) -> None:
        """A mirror derived from names in the model; it is tested even if a fault hides it in the effects."""
        if self._moving(mirror.state) not in self.seen and self.lab.in_time(_SEARCHING):
            self.seen.add(self._moving(mirror.state))
            self._try(mirror.state, _BY_NAME)
        if mirror.remark:
            self.found.remarks.append(mirror.remark)

    def _product_of_fitting(self, state_map: SignedMap, form: str) -> Candidate | None:
        """For random steps: a map as a product of two fitting maps, which saves thousands of steps for its own test."""
        if self.lab.kind != "stochastic":
            return None
        fitting = [each for each in self.found.candidates if each.reward_agrees]
        for first, second in itertools.product(fitting, repeat=2):
            product = second * first
            if self._moving(product.state) == self._moving(state_map) and not product.is_identity:
                label = self.labels.get(self._moving(state_map), "")
                return replace(product, form=form, label=label, **self._others(product.state, product.action))
        return None

    def _try(self, state_map: SignedMap, form: str) -> None:
        self.found.tried += 1
        if (product := self._product_of_fitting(state_map, form)) is not None:
            self.found.candidates.append(product)
            return
        identity = SignedMap.identity(1)
        try:
            action_map = matching_action_map(self.lab, state_map, self.probes)
            screened = screen(self.lab, state_map, action_map, self.cases)
        except TargetError as error:
            # No action map is known yet, so the trial lists the state map only.
            why = f"the environment rejects images: {error.problem}"
            self._refuse(Candidate(state_map, identity, state_map, form=form), why, _REFUSES)
            return
        candidate = Candidate(
            state_map,
            action_map,
            state_map,
            screened.residual,
            screened.reward_agrees,
            screened.reward_gap,
            self.labels.get(self._moving(state_map), ""),
            form,
            screened.refuted,
            missed=screened.missed,
            **self._others(state_map, action_map),
        )
        if not screened.passes:
            self._refuse(candidate, self._misfit(screened), "the next state differs")
            return
        if screened.refuted and self.lab.kind == "stochastic":  # a run would give more detail, but is slow in this case
            self._refuse(candidate, screened.refuted, "rewards or terminations differ")
            return
        try:
            complete = self._with_observation(candidate, screened)
            if complete.action.is_identity and _unseen(complete):
                self._refuse(complete, _UNSEEN, _UNSEEN)
            else:
                self.found.candidates.append(complete)
        except NoObservationMapError as error:
            self._refuse(candidate, error.problem, "no matching map of the observation was found")
        except TargetError as error:
            self._refuse(candidate, f"the environment rejects images: {error.problem}", _REFUSES)

    def _others(self, state_map: SignedMap, action_map: SignedMap) -> dict[str, Any]:
        """Further action maps, in case noise hid the correct one.

        Otherwise only a wrong action map might be refuted.
        """
        if self.lab.kind != "stochastic" or self.lab.is_whole or self.lab.values is None:
            return {}
        # K must repeat when L does: L^n = 1 asks for K^n = 1.
        fitting = [each for each in list_few(self.lab) if state_map.order % max(1, each.order) == 0]
        return {"guessed": True, "others": tuple(each for each in fitting if each != action_map)}

    def _with_observation(self, candidate: Candidate, screened: Screened) -> Candidate:
        if self.lab.shows_state:
            return candidate
        if is_image(self.lab):  # eight maps at most: the steps of the screening distinguish them
            before, after = self.cases.outcomes.observations, screened.images.observations
            return replace(candidate, observation=matching_picture_map(self.lab, before, after))
        if self.sightings is None:
            self.sightings = look_around(self.lab)
        observed = matching_observation_map(self.lab, candidate.state, candidate.action, self.sightings)
        return replace(candidate, observation=observed, unseen=self.sightings.is_partial)

    def _refuse(self, candidate: Candidate, why: str, kind: str) -> None:
        label = self.labels.get(self._moving(candidate.state))
        moves = f"{label}: {state_text(candidate.state)}" if label else state_text(candidate.state)
        order, misfit, form = candidate.state.order, candidate.residual, candidate.form
        self.found.refused.append(Trial(moves, "", order, "rejected", why, misfit, kind=kind, form=form))

    def _misfit(self, screened: Screened) -> str:
        misses = 1 - screened.share
        return (
            f"the next state differs on {misses:.0%} of {len(self.cases.states)} states, most strongly in "
            f"state[{screened.coordinate}] (by {screened.residual:.2g} of a typical step at the median)"
        )

    def _moving(self, state_map: SignedMap) -> tuple[tuple[int, int, float], ...]:
        """The part of a map on varying coordinates: their images, signs and offsets."""
        used = np.flatnonzero(self.lab.spread > 0)
        return tuple((state_map.index[j], state_map.sign[j], state_map.offset[state_map.index[j]]) for j in used)

    def _remark_fixed(self, structure: Structure) -> None:
        fixed = structure.fixed
        if fixed:
            listed = ", ".join(f"state[{j}]" for j in fixed[:_MOST_REMARKED])
            more = f" and {len(fixed) - _MOST_REMARKED} more" if len(fixed) > _MOST_REMARKED else ""
            self.found.remarks.append(
                f"coordinates that never changed in the visited states were left fixed: {listed}{more}"
            )

    def _remark_identical_actions(self) -> None:
        if self.lab.values is None or not self.lab.values.single or self.lab.kind != "deterministic":
            return
        table = self.probes.outcomes
        alike = [
            (a, b) for a in range(self.lab.values.total) for b in range(a) if np.array_equal(table[:, a], table[:, b])
        ]
        if alike:
            listed = ", ".join(f"{b} and {a}" for a, b in alike[:_MOST_REMARKED])
            self.found.remarks.append(
                f"actions with the same effect in every tried state were not distinguished: {listed}"
            )


def _unseen(candidate: Candidate) -> bool:
    """Whether observations are unchanged."""
    return candidate.observation.is_identity


def state_text(state: SignedMap, letter: str = "s") -> str:
    """A map of states (or observations) in words.

    Example:
        >>> state_text(SignedMap.of([0, 1], [-1, 1]))
        '(s0, s1) -> (-s0, s1)'
    """
    return describe(parse_entry(state.spec_entry(), "state"), letter)


def size_of(lab: Laboratory) -> tuple[str, str]:
    """The number of maps of the searched form, and their description.

    Returns:
        For instance ("768", "maps: signed permutations of 4 observation coordinates, permutations of 2 actions").
    """
    states = 2**lab.dim * math.factorial(lab.dim)
    searched = "observation" if lab.shows_state else "state"
    if lab.values is not None:
        acts, parts = lab.values.count_of_maps(), len(lab.values.counts)
        named = f"permutations of {lab.values.total} actions"
        if not lab.values.single:
            named = f"permutations of {parts} action component{'' if parts == 1 else 's'} and of their values"
    else:
        m = int(np.prod(lab.action_space.shape)) if isinstance(lab.action_space, spaces.Box) else 1
        acts = 2**m * math.factorial(m)
        named = f"signed permutations of {m} action component{'' if m == 1 else 's'}"
    return number(states * acts), f"maps: signed permutations of {lab.dim} {searched} coordinates, {named}"


def number(value: int) -> str:
    """A count, as a power of ten if it is large.

    Example:
        >>> number(768), number(10**39)
        ('768', '10^39')
    """
    return f"{value:,}" if value < 10**7 else f"10^{int(math.log10(value))}"
