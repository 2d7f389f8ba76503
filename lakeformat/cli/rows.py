"""``lake scan``, ``lake changes`` and ``lake write``: rows out of a table, and into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeformat.cli.output import AsJson, listed, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from lakeformat.cli.row_files import Form

__all__ = ["register"]

SHOWN_ROWS = 100
"""So many a person is shown who does not say how many to show."""

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="database.table, also 'database.table$branch_dev' or '…$ro', or its directory",
    ),
]
ColumnsOption = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these columns, in this order.")
]
WhereOption = Annotated[
    str | None, typer.Option(metavar="SQL", help="""A condition, such as "amount > 10".""")
]
LimitOption = Annotated[int | None, typer.Option(min=0, help="At most so many rows.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table, csv, json (one object per line) or parquet; by the end of --output's name.",
    ),
]
AsJsonRows = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
OutputOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write here instead of printing; replaced when complete."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (scan, changes, write):
        app.command()(command)


def scan(
    context: typer.Context,
    table: TableArgument,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    snapshot: Annotated[int | None, typer.Option(help="Rows of this snapshot.")] = None,
    tag: Annotated[str | None, typer.Option(help="Rows of the snapshot of this tag.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="Rows as they were then, in UTC.")
    ] = None,
    watermark: Annotated[
        int | None,
        typer.Option(
            metavar="MILLIS",
            help="Rows of the first snapshot whose watermark is at least this, in milliseconds.",
        ),
    ] = None,
    newest: Annotated[
        bool,
        typer.Option("--newest", help="The newest rows; the table's scan.* options are ignored."),
    ] = False,
    limit: LimitOption = None,
    form: FormatOption = None,
    as_json: AsJsonRows = False,
    output: OutputOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Print rows of a table, or write them into a file.

    An example: lake scan shop.orders --where "amount > 10" --limit 5
    """
    from lakeformat.cli.row_files import form_of

    chosen = form_of(form, output, as_json=as_json)
    found = named_table(context, table).scan(
        listed(columns) if columns is not None else None,
        where=where,
        snapshot=snapshot,
        tag=tag,
        as_of=int(as_of) if as_of is not None and as_of.isdecimal() else as_of,
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
            metavar="SNAPSHOT", help="A number, a time such as 2024-01-31T10:00 or a tag."
        ),
    ],
    upto: Annotated[
        str | None, typer.Option(metavar="SNAPSHOT", help="The same; the newest if left out.")
    ] = None,
    mode: Annotated[str, typer.Option(help="auto, delta, changelog or diff.")] = "auto",
    columns: ColumnsOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    form: FormatOption = None,
    as_json: AsJsonRows = False,
    output: OutputOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Print what changed after one snapshot and up to another, each row after its kind.

    An example: lake changes shop.orders --after 3
    """
    from lakeformat.cli.row_files import form_of
    from lakeformat.paimon.compact.changelogs.producers import makes_changelog
    from lakeformat.paimon.read.rows import Rows

    chosen = form_of(form, output, as_json=as_json)
    opened = named_table(context, table)
    found = opened.changes(
        _window_end(after),
        None if upto is None else _window_end(upto),
        mode,
        columns=listed(columns) if columns is not None else None,
        where=where,
    )
    limited = Rows(found.schema, found.to_batches, _asked(limit, chosen))
    is_empty = _emit(limited, chosen, output, limit) == 0
    if is_empty and found.mode == "changelog" and makes_changelog(opened.options):
        typer.echo(
            "what was written since the last compaction is told by the next: "
            f"lake changelog {table}",
            err=True,
        )


def write(
    context: typer.Context,
    table: TableArgument,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Files that end in .csv, .json or .parquet"),
    ],
    kinds: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says +I, -U, +U or -D of each row."),
    ] = None,
    overwrite: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Put the rows in place of others: all, dynamic (the partitions that get rows) or "
            "a partition such as dt=2024-01-31.",
        ),
    ] = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Add the rows of files to a table, all of them in one commit.

    An example: lake write shop.orders new.csv more.parquet
    """
    from lakeformat.cli.progress import progressing
    from lakeformat.cli.read_files import read_rows

    try:
        found = named_table(context, table)
    except NotFoundError as reason:
        raise NotFoundError(f"{reason}; {_made_first(context, table)}") from None
    rows = read_rows(inputs, found.schema, kinds)
    report = found.write(
        progressing(rows, "writing"),
        kinds,
        overwrite=None if overwrite is None else _what(overwrite),
    )
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(f"{counted(report.rows, 'row')}: {report.reason}")


def _made_first(context: typer.Context, missing: str) -> str:
    """How to make what is not there: the branch of a table that is, or the table."""
    from lakeformat.catalog.names import BRANCH_PREFIX

    table, _, suffixes = missing.partition("$")
    branch = suffixes.partition("$")[0]
    if branch.startswith(BRANCH_PREFIX):
        with suppress(NotFoundError):
            named_table(context, table)
            name = branch.removeprefix(BRANCH_PREFIX)
            return f"a branch is made first: lake branch create {table} {name}"
    return (
        f"a table is made first: lake create-table {table} --column 'id BIGINT' "
        "--column 'dt STRING', or catalog.create_table in Python"
    )


def _emit(rows: Any, form: Form, output: str | None, limit: int | None) -> int | None:
    """How many rows a terminal has been shown; None where they went into a file."""
    from lakeformat.cli.progress import progressing
    from lakeformat.cli.row_files import Form, print_table, write_rows

    if form is not Form.TABLE:
        batches: Iterator[pa.RecordBatch] = progressing(rows.to_batches(), "reading")
        write_rows(batches, rows.schema, form, output)
        return None
    if output is not None:
        raise InvalidRequestError("a table is printed: choose --format csv, json or parquet")
    found = rows.to_arrow()
    print_table(found.slice(0, SHOWN_ROWS) if limit is None else found)
    if limit is None and found.num_rows > SHOWN_ROWS:
        typer.echo(
            f"the first {SHOWN_ROWS} rows; --limit shows more, --format writes all", err=True
        )
    shown: int = found.num_rows
    return shown


def _asked(limit: int | None, form: Form) -> int | None:
    """One row more than is shown tells whether there are more."""
    return SHOWN_ROWS + 1 if limit is None and form.value == "table" else limit


def _window_end(text: str) -> int | str | datetime:
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _what(overwrite: str) -> Any:
    if overwrite in ("all", "dynamic"):
        return {} if overwrite == "all" else "dynamic"
    pairs = [part.partition("=") for part in overwrite.split(",")]
    if not all(name and equals for name, equals, _ in pairs):
        raise InvalidRequestError(
            f"--overwrite is all, dynamic or a partition such as dt=2024-01-31, got {overwrite!r}"
        )
    return {name.strip(): value for name, _, value in pairs}
