# SPDX-License-Identifier: Apache-2.0
"""``lake publish``: Iceberg metadata of a Paimon table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.grid import GridColumn, print_grid
from lakeformat.cli.output import AsJson, print_json, print_report
from lakeformat.cli.progress import progress_line
from lakeformat.cli.warehouse import WarehouseOption, named_table

if TYPE_CHECKING:
    from lakeformat import PublicationCheckReport, Table

__all__ = ["register"]

_EXIT_FAILED = 1
_STYLE = {
    "equal": "green",
    "differ": "bold red",
    "failed": "bold red",
    "known limit": "yellow",
}

CheckOption = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Publish nothing; read the published table with each installed Iceberg reader, and "
        "compare its rows with those that this program reads from the published files.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(publish)


def publish(
    context: typer.Context,
    table: TableArgument,
    check: CheckOption = False,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Publish a Paimon table as Iceberg metadata. The command publishes the snapshots that are not
    published yet, such as snapshots of other engines. The table needs the option
    metadata.iceberg.storage, with a value such as table-location.

    Commits of this program publish without this command, unless the option iceberg.publish-mode is
    async.

    With --check the exit code is 1 if the metadata is behind the table, if it names wrong files or
    lacks files, or if a reader of Iceberg fails or returns wrong rows. Known limits of a reader,
    such as that it reads no deletion vectors, do not change the exit code.

    An example: lake publish shop.orders
    """
    from lakeformat.publish.publish import publish_table

    found = named_table(context, table)
    if check:
        _check(found, as_json=as_json)
        return
    with progress_line("publishing"):
        report = publish_table(found)
    print_report(report, as_json=as_json)


def _check(table: Table, *, as_json: bool) -> None:
    from lakeformat.publish.check.check import check_publication

    with progress_line("checking"):
        report = check_publication(table)
    if as_json:
        print_json([report.to_dict()])
    else:
        _print(report)
    if report.failed:
        raise typer.Exit(_EXIT_FAILED)


def _print(report: PublicationCheckReport) -> None:
    typer.echo(f"{report.reason}\n")
    if report.readers:
        found = report.readers
        counts = {
            "rows": ["" if each.rows is None else str(each.rows) for each in found],
            "missing": [str(each.missing_rows) for each in found],
            "other": [str(each.other_rows) for each in found],
        }
        print_grid(
            [
                GridColumn("reader", [each.reader for each in found]),
                GridColumn("outcome", [each.outcome for each in found], styles=_STYLE),
                *(GridColumn(name, texts, is_number=True) for name, texts in counts.items()),
                GridColumn("reason", [each.reason for each in found]),
            ]
        )
    for problem in (report.outstanding, report.wrong_files):
        if problem is not None:
            typer.echo(f"\n{problem}")
