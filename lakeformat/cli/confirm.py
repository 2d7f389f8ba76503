# SPDX-License-Identifier: Apache-2.0
"""Questions before files are deleted for good or the writer of another program is disturbed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from lakeformat.errors import InvalidRequestError

__all__ = ["Yes", "goes_on", "is_wanted"]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")]


def is_wanted(what: str, *, yes: bool, undo: str | None = None) -> bool:
    """Return True if ``what`` may be deleted: with --yes, or after a yes at the terminal.

    Without a terminal, raise an error that asks for --yes. ``undo`` names the command that restores
    ``what``, if there is one.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        how = "cannot be undone" if undo is None else f"can only be undone by {undo}"
        raise InvalidRequestError(f"deleting {what} {how}: add --yes to delete")
    question = f"Delete {what} for good?" if undo is None else f"Delete {what}? ({undo} undoes it)"
    if not typer.confirm(question, err=True):
        typer.echo("nothing was deleted", err=True)
        return False
    return True


def goes_on(warnings: Sequence[str], question: str, *, yes: bool, declined: str) -> bool:
    """Print warnings and return True to continue; only a person at a terminal is asked.

    A script continues: the warnings are in its log.
    """
    for warning in warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    if not warnings or yes or not sys.stdin.isatty():
        return True
    if not typer.confirm(question, err=True):
        typer.echo(declined, err=True)
        return False
    return True
