"""`symcheck atlas`: which symmetries the known environments have, and which they only seem to have."""

from __future__ import annotations

from typing import Annotated

import typer

from symcheck.cli.exit_codes import reports_mistakes
from symcheck.errors import TargetError, suggestion


@reports_mistakes
def command(
    env_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Environments; all when left out.")
    ] = None,
) -> None:
    """Print what is recorded for the known environments: symmetry, verdict, and why."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from symcheck.envs import atlas

    entries = atlas.entries()
    known = sorted({env_id for entry in entries for env_id in entry.envs})
    for env_id in env_ids or ():
        if env_id not in known:
            raise TargetError(f"the atlas has no entry for {env_id!r}.", where="ID", remedy=suggestion(env_id, known))
    table = Table("symmetry", "environments", "claimed", "verdict", "why", title="symmetry atlas", title_justify="left")
    for entry in entries:
        if env_ids and not set(env_ids) & set(entry.envs):
            continue
        claimed = "yes" if entry.claim else "no"
        cells = (entry.symmetry.name, ", ".join(entry.envs), claimed, entry.verdict, entry.why)
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)
