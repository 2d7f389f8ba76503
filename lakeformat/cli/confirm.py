"""Asking before something goes for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lakeformat.errors import InvalidRequestError

__all__ = ["Yes", "is_wanted"]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before removing.")]


def is_wanted(what: str, *, yes: bool, undo: str | None = None) -> bool:
    """Whether it shall go: somebody has said so, or says so now; a script has to say --yes.

    ``undo`` is how to get it back, where that is possible.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        how = "cannot be undone" if undo is None else f"can only be undone by {undo}"
        raise InvalidRequestError(f"removing {what} {how}: say --yes to do it")
    question = f"Remove {what} for good?" if undo is None else f"Remove {what}? ({undo} undoes it)"
    if not typer.confirm(question, err=True):
        typer.echo("nothing was removed", err=True)
        return False
    return True
