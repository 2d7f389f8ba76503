"""How a command shows what goes with a tag or a branch, file by file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from lakeformat.byte_size import size
from lakeformat.cli.output import Shown, print_json, print_rows
from lakeformat.count_text import counted
from lakeformat.errors import LakeError

if TYPE_CHECKING:
    from lakeformat.clean import Removal
    from lakeformat.tags.held import DeletionReport

__all__ = ["show_deletion"]

_FILES = (
    Shown("kind", "kind"),
    Shown("size", "size", size),
    Shown("path", "file"),
    Shown("reason", "why"),
)


def show_deletion(report: DeletionReport, removals: Sequence[Removal], *, as_json: bool) -> None:
    """Each file with the reason why it goes, and the sum; an error if some would not go."""
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
            f"{counted(report.failures, 'file')} of {report.table} would not go: run it again to "
            f"remove them. The first is {report.failed[0]}"
        )
