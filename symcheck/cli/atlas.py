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
    from rich.text import Text

    from symcheck.envs import atlas

    entries = atlas.entries()
    known = sorted({env_id for entry in entries for env_id in entry.environments})
    for env_id in env_ids or ():
        if env_id not in known:
            raise TargetError(f"the atlas has no entry for {env_id!r}.", where="ID", remedy=suggestion(env_id, known))
    console = Console(highlight=False)
    for entry in entries:
        if env_ids and not set(env_ids) & set(entry.environments):
            continue
        claimed = "claimed" if entry.claim else "recorded, not claimed"
        console.print(Text(f"{entry.name}  {entry.verdict}, {claimed}", style="bold"), soft_wrap=True)
        console.print(Text(f"  {', '.join(entry.environments)}: {entry.why}"), soft_wrap=True)
