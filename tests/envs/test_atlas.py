"""The atlas: every entry can be built, fits its environments and explains itself."""

from __future__ import annotations

import pytest

from symcheck.envs import atlas
from symcheck.envs.targets import resolve_environment
from symcheck.errors import SpecError


@pytest.mark.parametrize("entry", atlas.entries(), ids=lambda entry: entry.name)
def test_an_entry_fits_the_environments_that_it_names(entry: atlas.AtlasEntry) -> None:
    symmetry = entry.symmetry()
    assert symmetry.name == entry.name
    assert entry.environments
    assert entry.claim == (entry.verdict != "failed")
    assert entry.why.endswith(".")
    for env_id in entry.environments:
        env = resolve_environment(env_id).make()
        symmetry.bind(env.observation_space, env.action_space)


def test_names_are_unique() -> None:
    names = [entry.name for entry in atlas.entries()]
    assert len(names) == len(set(names))


def test_an_unknown_name_proposes_the_nearest() -> None:
    with pytest.raises(SpecError, match="Did you mean 'cartpole/mirror'"):
        atlas.entry("cartpole/miror")


def test_an_environment_that_is_not_known_has_no_entries() -> None:
    assert atlas.entries_for("Blackjack-v1") == ()
