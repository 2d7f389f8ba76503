# SPDX-License-Identifier: Apache-2.0
"""Deletes a tag or a branch, and prints the files that are deleted with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from lakeformat.cli.confirm import plan_is_wanted
from lakeformat.cli.output import Shown, print_json, print_rows
from lakeformat.cli.progress import counting
from lakeformat.errors import LakeError
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    from lakeformat import DeletionReport, Removal

__all__ = ["delete_and_show"]

_FILES = (
    Shown("kind", "kind"),
    Shown("size", "size", size),
    Shown("path", "file"),
    Shown("reason", "why"),
)


def delete_and_show(
    delete: Callable[..., DeletionReport], what: str, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Delete a tag or branch and print the result; ask first if files are deleted with it.

    ``what`` names the tag or branch in the question. Without ``dry_run`` and ``yes``, ``delete`` is
    first called with ``dry_run=True`` to count the files.
    """
    removals: list[Removal] = []
    if not dry_run and not yes:
        planned = delete(dry_run=True)
        count = sum(planned.files.values())
        shown = f"{what} with {counted(count, 'file')}"
        if count and not plan_is_wanted(shown, planned, partial(delete, dry_run=True), yes=False):
            return
    with counting(
        "looking for files", "files would be deleted" if dry_run else "files deleted"
    ) as step:

        def on_progress(removal: Removal) -> None:
            removals.append(removal)
            if step is not None:
                step()

        report = delete(dry_run=dry_run, on_progress=on_progress)
    show_deletion(report, removals, as_json=as_json)


def show_deletion(report: DeletionReport, removals: Sequence[Removal], *, as_json: bool) -> None:
    """Print each file in ``removals`` with the reason, and a summary.

    In a dry run ``removals`` are the files that would be deleted. ``LakeError`` is raised if some
    files could not be deleted.
    """
    files: list[dict[str, Any]] = [each.to_dict() for each in removals]
    if as_json:
        print_json([{**report.to_dict(), "removals": files}])
    else:
        if files:
            columns = {column.key: [file[column.key] for file in files] for column in _FILES}
            print_rows(_FILES, columns, empty="")
        typer.echo(report.reason)
    if report.failures:
        raise LakeError(
            f"{counted(report.failures, 'file')} of {report.table} could not be deleted: run the "
            f"command again to delete the rest. The first file is {report.failed[0]}"
        )
