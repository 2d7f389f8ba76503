"""Asking before something is deleted for good, or a writer of another program is harmed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from lakeformat.errors import InvalidRequestError

__all__ = ["Yes", "goes_on", "is_wanted"]

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


def goes_on(warnings: Sequence[str], question: str, *, yes: bool, declined: str) -> bool:
    """Show warnings and return True to go on; only a person at a terminal is asked.

    A script goes on, as it did before the warning: its log has it.
    """
    for warning in warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    if not warnings or yes or not sys.stdin.isatty():
        return True
    if not typer.confirm(question, err=True):
        typer.echo(declined, err=True)
        return False
    return True
