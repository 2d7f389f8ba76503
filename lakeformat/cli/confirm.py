# SPDX-License-Identifier: Apache-2.0
"""Questions before a command deletes files, or changes a table that another program compacts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from lakeformat.errors import CommitConflictError, InvalidRequestError

__all__ = ["Yes", "goes_on", "is_wanted", "plan_is_wanted"]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking; needed in scripts.")]


def is_wanted(what: str, *, yes: bool, undo: str | None = None) -> bool:
    """Return True if ``what`` may be deleted: with ``yes``, or if the person at the terminal
    agrees.

    Without a terminal and without ``yes``, ``InvalidRequestError`` is raised. ``undo`` is the
    command that restores ``what``; None if no command does.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        how = "cannot be undone" if undo is None else f"can only be undone by {undo}"
        raise InvalidRequestError(f"deleting {what} {how}: add --yes to delete")
    question = f"Delete {what}? (To undo it: {undo})" if undo else f"Delete {what} for good?"
    if not typer.confirm(question, err=True):
        typer.echo("nothing was deleted", err=True)
        return False
    return True


def plan_is_wanted(
    what: str, planned: object, plan: Callable[[], object], *, yes: bool, undo: str | None = None
) -> bool:
    """Return True if ``what`` may be deleted, as ``is_wanted`` does.

    ``planned`` is the plan that the person has seen. If the person agrees, ``plan`` makes a new
    plan. If the new plan differs from ``planned``, ``CommitConflictError`` is raised, because the
    person agreed to something else. With ``yes`` nothing is asked, and ``plan`` is not called.
    """
    if not is_wanted(what, yes=yes, undo=undo):
        return False
    if not yes and plan() != planned:
        raise CommitConflictError(
            f"the plan to delete {what} changed while the question was shown: nothing was "
            "deleted; run the command again"
        )
    return True


def goes_on(warnings: Sequence[str], question: str, *, yes: bool, declined: str) -> bool:
    """Print ``warnings``, and return True if the command may continue.

    If there are warnings, a person at a terminal is asked ``question``, except with ``yes``. If the
    person declines, ``declined`` is printed, and False is returned. A script continues, because its
    log has the warnings.
    """
    for warning in warnings:
        typer.echo(f"WARNING: {warning}", err=True)
    if not warnings or yes or not sys.stdin.isatty():
        return True
    if not typer.confirm(question, err=True):
        typer.echo(declined, err=True)
        return False
    return True
