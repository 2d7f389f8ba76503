# SPDX-License-Identifier: Apache-2.0
"""``lake scan``, ``lake changes`` and ``lake write``: read and write the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakeformat as lake
from lakeformat.cli.output import AsJson, listed, print_json
from lakeformat.cli.warehouse import WarehouseOption, named_table_of_any_format
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.types.count_text import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from lakeformat.cli.write_row_files import Form
    from lakeformat.files.foreign.column_mapping import ColumnMapping
    from lakeformat.tables.write_report import WriteReport

__all__ = ["register"]

SHOWN_ROWS = 100
"""The number of rows printed without --limit."""

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
LimitOption = Annotated[int | None, typer.Option(min=0, help="At most this many rows.")]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table, csv, json (one object per line) or parquet. Default: by the suffix of "
        "--output, else table.",
    ),
]
AsJsonRows = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
OutputOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Write to this file, which appears when complete, instead of printing."
    ),
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
        str | None, typer.Option(metavar="TIME", help="Rows as they were at this time, in UTC.")
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
            metavar="SNAPSHOT",
            help="Start after this: a number, a time such as 2024-01-31T10:00 or a tag.",
        ),
    ],
    upto: Annotated[
        str | None,
        typer.Option(metavar="SNAPSHOT", help="End with this. Default: the newest snapshot."),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="auto, delta, changelog or diff; of an Iceberg table auto, changelog, diff or "
            "appends."
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
    """Print the changes after one snapshot and up to another, with the kind of each row.

    An example: lake changes shop.orders --after 3
    """
    from lakeformat.cli.write_row_files import form_of
    from lakeformat.tables.results import Rows

    chosen = form_of(form, output, as_json=as_json)
    opened = named_table_of_any_format(context, table)
    found = opened.changes(
        _window_end(after),
        None if upto is None else _window_end(upto),
        mode,
        columns=listed(columns) if columns is not None else None,
        where=where,
    )
    limited = Rows(found.schema, found.to_batches, _asked(limit, chosen))
    is_empty = _emit(limited, chosen, output, limit) == 0
    if not isinstance(opened, lake.Table) or not isinstance(found, lake.Changes):
        return
    if is_empty and found.mode == "changelog" and opened.options.makes_changelog:
        typer.echo(
            "the changelog does not cover writes since the last compaction; to bring it up to "
            f"date: lake changelog {table}",
            err=True,
        )


def write(
    context: typer.Context,
    table: TableArgument,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files that end in .csv, .json or .parquet, also packed (.csv.gz)",
        ),
    ],
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with +I, -U, +U or -D for each row; of Iceberg tables with "
            "--upsert-by.",
        ),
    ] = None,
    overwrite: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Replace rows: table (all of them), partitions (all rows of the partitions that "
            "get rows) or a partition such as dt=2024-01-31.",
        ),
    ] = None,
    upsert_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Iceberg tables: replace the stored rows with the same key; repeat it.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SOURCE",
            help="A column of the table and its name in the files; repeat it.",
        ),
    ] = None,
    casts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TYPE",
            help="Cast a column as in SQL, such as 'amount=DECIMAL(10, 2)'; repeat it.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="csv, json or parquet. Default: the file's ending."
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="C", help=r"CSV: between values. Default: a comma; \t is a tab."),
    ] = None,
    quote: Annotated[
        str | None, typer.Option(metavar="C", help="CSV: around values. Default: a double quote.")
    ] = None,
    escape: Annotated[
        str | None,
        typer.Option(metavar="C", help="CSV: before a delimiter or quote inside a value."),
    ] = None,
    header: Annotated[
        bool,
        typer.Option(
            help="CSV: the first line names the columns. Without it: those of the table, in order."
        ),
    ] = True,
    null_values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="CSV: unquoted text that is NULL; repeat it. Default: empty."
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help="CSV and JSON. Default: utf-8.")
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="none, gzip, bz2 or zstd. Default: the file's ending."),
    ] = None,
    warehouse: WarehouseOption = None,
    as_json: AsJson = False,
) -> None:
    """Add the rows of files to a table, or replace rows, all in one commit.

    An example: lake write shop.orders new.csv more.parquet --delimiter ";"
    """
    from lakeformat.catalog.row_schema import row_schema
    from lakeformat.cli.progress import progressing
    from lakeformat.cli.read_row_files import read_rows
    from lakeformat.files.foreign.dialect import TextDialect

    dialect = TextDialect.of({**locals(), "null_values": null_values or None})
    try:
        found = named_table_of_any_format(context, table)
    except NotFoundError as reason:
        raise NotFoundError(f"{reason}; {_made_first(context, table)}") from None
    schema = row_schema(found)
    if upsert_by:  # so that deletes are no error
        schema = replace(schema, primary_keys=tuple(upsert_by))
    rows = read_rows(inputs, schema, kinds, form, dialect, _mapping(columns, casts))
    given = progressing(rows, "writing")
    report: lake.CommitReport | WriteReport
    if upsert_by:
        if overwrite is not None:
            raise InvalidRequestError(
                "--upsert-by and --overwrite exclude each other: leave one of them out"
            )
        report = found.upsert(given, upsert_by, kinds=kinds)
    else:
        what = None if overwrite is None else _what(overwrite)
        report = found.write(given, kinds, overwrite=what)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(f"{counted(report.rows, 'row')}: {report.reason}")


def _made_first(context: typer.Context, missing: str) -> str:
    """Return the command that creates the missing table, or the missing branch of a table."""
    from lakeformat.catalog.names import BRANCH_PREFIX

    table, _, suffixes = missing.partition("$")
    branch = suffixes.partition("$")[0]
    if branch.startswith(BRANCH_PREFIX):
        with suppress(NotFoundError):
            named_table_of_any_format(context, table)
            name = branch.removeprefix(BRANCH_PREFIX)
            return f"create the branch first: lake branch create {table} {name}"
    return (
        f"create the table first: lake create-table {table} --column 'id BIGINT' "
        "--column 'dt STRING', or catalog.create_table in Python"
    )


def _emit(rows: Any, form: Form, output: str | None, limit: int | None) -> int | None:
    """Print or write rows. Return the number of rows printed as a table, None for any other
    form.
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
    """Return the number of rows to read; None for all.

    Without a limit, a table on the terminal gets one row more than is printed, to know whether
    there are more.
    """
    return SHOWN_ROWS + 1 if limit is None and form.value == "table" else limit


def _window_end(text: str) -> int | str | datetime:
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _what(overwrite: str) -> Any:
    if overwrite in ("all", "dynamic", "partitions", "table"):
        return {} if overwrite == "all" else overwrite
    return _pairs(
        overwrite.split(","),
        f"--overwrite {overwrite!r} is unknown: use table, partitions or a partition such as "
        "dt=2024-01-31",
    )


def _mapping(columns: list[str] | None, casts: list[str] | None) -> ColumnMapping:
    from lakeformat.files.foreign.column_mapping import ColumnMapping
    from lakeformat.types.type_text import parse_type

    sources = _pairs(columns or [], "--columns must be NAME=SOURCE, such as amount='Amount (EUR)'")
    types = _pairs(casts or [], "--casts must be NAME=TYPE, such as 'amount=DECIMAL(10, 2)'")
    return ColumnMapping(sources, {name: parse_type(text) for name, text in types.items()})


def _pairs(texts: list[str], refusal: str) -> dict[str, str]:
    """Return the texts of the form name=value as a dict; raise the refusal for any other text."""
    pairs = [text.partition("=") for text in texts]
    if not all(name and equals for name, equals, _ in pairs):
        raise InvalidRequestError(refusal)
    return {name.strip(): value for name, _, value in pairs}
