# SPDX-License-Identifier: Apache-2.0
"""``lake scan`` and ``lake changes``: read the rows of a table."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.arguments import TableArgument, time_of
from lakeformat.cli.output import listed
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    import pyarrow as pa

    from lakeformat.cli.write_row_files import Form

__all__ = ["register"]

SHOWN_ROWS = 100
"""The largest number of rows in a printed table if --limit is not given."""

ScannedTableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="database.table, a branch as 'database.table$branch_dev', the fully compacted rows "
        "of a Paimon table as 'database.table$ro', or the table's directory",
    ),
]
ColumnsOption = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these columns, in this order.")
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        metavar="SQL", help="""Only rows that meet this condition, such as "amount > 10"."""
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="At most N rows. Default: all, or 100 if printed as a table."
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table, csv, json (one object per line) or parquet (only with --output). Default: "
        "by the ending of --output; without --output, table.",
    ),
]
AsJsonRows = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
OutputOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Write to this file, which appears when complete, and print nothing."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (scan, changes):
        app.command()(command)


def scan(
    context: typer.Context,
    table: ScannedTableArgument,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Rows of this snapshot: its number, or in an Iceberg or Mixed table its id.",
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(metavar="TAG", help="Rows of the snapshot of this tag. Not for Mixed tables."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Rows as of this time, such as '2024-01-31 10:00', in UTC."
        ),
    ] = None,
    watermark: Annotated[
        int | None,
        typer.Option(
            metavar="MILLIS",
            help="Rows of the first snapshot whose watermark, in epoch milliseconds, is at least "
            "this. Only for Paimon tables.",
        ),
    ] = None,
    newest: Annotated[
        bool,
        typer.Option(
            "--newest",
            help="Rows of the newest snapshot, even if the table options scan.* choose an older "
            "one.",
        ),
    ] = False,
    limit: LimitOption = None,
    form: FormatOption = None,
    as_json: AsJsonRows = False,
    output: OutputOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Print the rows of a table, or write them to a file.

    An example: lake scan shop.orders --where "amount > 10" --limit 5
    """
    from lakeformat.cli.write_row_files import form_of

    chosen = form_of(form, output, as_json=as_json)
    found = named_table_of_any_format(context, table).scan(
        listed(columns) if columns is not None else None,
        where=where,
        snapshot=snapshot,
        tag=tag,
        as_of=time_of(as_of),
        watermark=watermark,
        newest=newest,
        limit=_asked(limit, chosen),
    )
    _emit(found, chosen, output, limit)


def changes(
    context: typer.Context,
    table: TableArgument,
    after: Annotated[
        str,
        typer.Option(
            metavar="SNAPSHOT",
            help="Start after this snapshot: its number (in an Iceberg or Mixed table its id), a "
            "tag, a branch of an Iceberg table, a position such as main/8 (in a Mixed table "
            "main/8.11), or a time in UTC such as 2024-01-31T10:00. If a tag or such a branch has "
            "a name that looks like a number or a time, the tag or branch is used. 0 means before "
            "the first snapshot.",
        ),
    ],
    upto: Annotated[
        str | None,
        typer.Option(
            metavar="SNAPSHOT",
            help="End with this snapshot, given as for --after. Default: the newest.",
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="delta: rows as they were written. changelog: rows of the changelog; in Iceberg "
            "and Mixed tables, the changes of each commit. diff: difference of the two snapshots. "
            "auto: diff if both ends are tags (in Iceberg tables, tags or branches); otherwise "
            "changelog, or delta if a Paimon table has no changelog. Iceberg tables have no delta; "
            "they have appends: the rows of commits that only add rows. Mixed tables have only "
            "auto and changelog.",
        ),
    ] = "auto",
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    form: FormatOption = None,
    as_json: AsJsonRows = False,
    output: OutputOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Print the changes after one snapshot and up to another. The first column is the kind of each
    change: +I, -U, +U or -D.

    An example: lake changes shop.orders --after 3
    """
    from lakeformat.cli.write_row_files import form_of
    from lakeformat.tables.results import Rows

    chosen = form_of(form, output, as_json=as_json)
    opened = named_table_of_any_format(context, table)
    found = opened.changes(
        _window_end(opened, after),
        None if upto is None else _window_end(opened, upto),
        mode,
        columns=listed(columns) if columns is not None else None,
        where=where,
    )
    limited = Rows(found.schema, found.to_batches, _asked(limit, chosen))
    is_empty = _emit(limited, chosen, output, limit) == 0
    if is_empty and found.waits_for_compaction:
        typer.echo(
            "the changelog does not cover writes since the last compaction; to bring it up to "
            f"date: lake changelog {shlex.quote(table)}",
            err=True,
        )


def _emit(rows: Any, form: Form, output: str | None, limit: int | None) -> int | None:
    """Print rows or write them to ``output``.

    Return the number of rows that were read for a printed table; None for any other form. The form
    ``TABLE`` with an ``output`` raises ``InvalidRequestError``.
    """
    from lakeformat.cli.progress import progressing
    from lakeformat.cli.write_row_files import Form, print_table, write_rows

    if form is not Form.TABLE:
        batches: Iterator[pa.RecordBatch] = progressing(rows.to_batches(), "reading")
        write_rows(batches, rows.schema, form, output)
        return None
    if output is not None:
        raise InvalidRequestError(
            "--format table is only printed: for --output choose --format csv, json or parquet"
        )
    found = rows.to_arrow()
    print_table(found.slice(0, SHOWN_ROWS) if limit is None else found)
    if limit is None and found.num_rows > SHOWN_ROWS:
        typer.echo(
            f"these are the first {SHOWN_ROWS} rows: --limit N shows more, --format csv shows all",
            err=True,
        )
    shown: int = found.num_rows
    return shown


def _asked(limit: int | None, form: Form) -> int | None:
    """Return the number of rows to read; None for all rows.

    Without a limit, a printed table reads one row more than it prints, to detect further rows.
    """
    return SHOWN_ROWS + 1 if limit is None and form.value == "table" else limit


def _window_end(table: Any, text: str) -> int | str | datetime:
    """Return ``text`` as an int if it is a number, or as a datetime if it is a time.

    Any other text is returned unchanged. So is the name of a tag, or of a branch of an Iceberg
    table, even if it looks like a number or a time.
    """
    try:
        end = int(text) if text.isdecimal() else datetime.fromisoformat(text)
    except ValueError:
        return text
    try:
        table.scan(tag=text)
    except (NotFoundError, InvalidRequestError):  # no such tag, or a table that has no tags
        takes_branches = table.format == "iceberg"
        if not (takes_branches and any(each.name == text for each in table.branches.list())):
            return end
    return text
