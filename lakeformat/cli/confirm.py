"""Asking before something goes for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lakeformat.errors import InvalidRequestError

__all__ = ["Yes", "is_wanted"]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before removing.")]


def is_wanted(what: str, *, yes: bool) -> bool:
    """Whether it shall go: somebody has said so, or says so now; a script has to say --yes."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidRequestError(f"removing {what} cannot be undone: say --yes to do it")
    if not typer.confirm(f"Remove {what} for good?", err=True):
        typer.echo("nothing was removed", err=True)
        return False
    return True
