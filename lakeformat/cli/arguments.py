"""Arguments that commands of several subjects share, so that they read alike in every help."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["DryRun", "TableArgument"]

TableArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="database.table, a branch of it, or its directory"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]
