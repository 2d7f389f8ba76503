# SPDX-License-Identifier: Apache-2.0
"""``lake write``: writes the rows of files to a table, in one commit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakeformat as lake
from lakeformat.cli.arguments import TableArgument
from lakeformat.cli.copyable import copyable
from lakeformat.cli.output import AsJson, print_json
from lakeformat.cli.warehouse import (
    WarehouseOption,
    existing_catalog_of_any_format,
    is_listed,
    named_table_of_any_format,
)
from lakeformat.errors import InvalidRequestError, NotFoundError
from lakeformat.tables.named_once import named_once
from lakeformat.types.count_text import counted
from lakeformat.types.sentence import sentence

if TYPE_CHECKING:
    from lakeformat.files.foreign.column_mapping import ColumnMapping
    from lakeformat.tables.write_report import WriteReport

__all__ = ["register"]

InputsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Local files that end in .csv, .json (one object per line) or .parquet, also "
        "compressed (.csv.gz); with --format, files of any ending",
    ),
]
KindsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column with +I, -U, +U or -D for each row. Default: +I for all rows. Iceberg "
        "tables: only with --upsert-by.",
    ),
]
OverwriteOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="The rows to replace: table (all rows), partitions (all rows of each partition that "
        "gets new rows), or a partition, such as dt=2024-01-31.",
    ),
]
ReadSnapshotOption = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION",
        help="The snapshot from which the rows were computed, such as 7; see --conflict. Only for "
        "Paimon tables.",
    ),
]
ConflictOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="If other commits have changed the same partitions since --read-snapshot: "
        "'optimistic' fails; 'transaction-order' skips each row whose key they have changed, and "
        "writes the rest. Default: the table option write.conflict. A Mixed table takes only "
        "'transaction-order': if another writer changes a key after the command has started, that "
        "change wins. Not for Iceberg tables.",
    ),
]
UpsertByOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Iceberg and Mixed tables: a column of the key. Each row replaces the stored rows "
        "that have its key. Repeatable.",
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SOURCE",
        help="A column of the table and its name in the files, if the names differ. Repeatable.",
    ),
]
CastsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=TYPE",
        help="Cast a column as in SQL, such as 'amount=DECIMAL(10, 2)'. Repeatable.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", help="csv, json or parquet. Default: by the file's ending."
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        metavar="C", help=r"CSV: character between values; \t is a tab. Default: a comma."
    ),
]
QuoteOption = Annotated[
    str | None,
    typer.Option(metavar="C", help="CSV: character around values. Default: a double quote."),
]
EscapeOption = Annotated[
    str | None,
    typer.Option(
        metavar="C",
        help="CSV: character before a delimiter or quote inside a value. Default: none.",
    ),
]
HeaderOption = Annotated[
    bool,
    typer.Option(
        help="CSV: the first line names the columns. Without a header, values have the order of "
        "the table's columns."
    ),
]
NullValuesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="CSV: unquoted text that means NULL. Repeatable. Default: the empty text.",
    ),
]
EncodingOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of CSV and JSON. Default: utf-8.")
]
CompressionOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="none, gzip, bz2 or zstd. Default: by the file's ending, such as .gz, .bz2 or .zst.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``write`` to the program."""
    app.command()(write)


def write(
    context: typer.Context,
    table: TableArgument,
    inputs: InputsArgument,
    kinds: KindsOption = None,
    overwrite: OverwriteOption = None,
    read_snapshot: ReadSnapshotOption = None,
    conflict: ConflictOption = None,
    upsert_by: UpsertByOption = None,
    columns: ColumnsOption = None,
    casts: CastsOption = None,
    form: FormatOption = None,
    delimiter: DelimiterOption = None,
    quote: QuoteOption = None,
    escape: EscapeOption = None,
    header: HeaderOption = True,
    null_values: NullValuesOption = None,
    encoding: EncodingOption = None,
    compression: CompressionOption = None,
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
    found = _opened(context, table)
    schema = row_schema(found)
    if upsert_by:  # so that deletes are no error
        schema = replace(schema, primary_keys=tuple(upsert_by))
    rows = read_rows(inputs, schema, kinds, form, dialect, _mapping(columns, casts))
    given = {"read_snapshot": read_snapshot, "conflict": conflict}
    order = {name: value for name, value in given.items() if value is not None}
    report = _written(found, progressing(rows, "writing"), kinds, overwrite, upsert_by, order)
    if as_json:
        print_json([report.to_dict()])
    else:
        typer.echo(f"{counted(report.rows, 'row')}: {report.reason}")


def _opened(context: typer.Context, table: str) -> Any:
    try:
        return named_table_of_any_format(context, table)
    except NotFoundError as reason:
        if (made := _made_first(context, table)) is None:
            raise
        raise NotFoundError(f"{sentence(reason)} {made}") from None


def _written(
    table: Any,
    rows: Iterator[Any],
    kinds: str | None,
    overwrite: str | None,
    upsert_by: list[str] | None,
    order: dict[str, Any],
) -> lake.CommitReport | WriteReport:
    """Write the rows as --overwrite and --upsert-by choose, and return the report.

    Options that exclude each other raise ``InvalidRequestError``.
    """
    report: lake.CommitReport | WriteReport
    if not upsert_by:
        what = None if overwrite is None else _what(overwrite)
        report = table.write(rows, kinds, overwrite=what, **order)
    elif order:
        given = " and ".join(f"--{name.replace('_', '-')}" for name in order)
        raise InvalidRequestError(
            f"--upsert-by excludes {given}: leave out either --upsert-by or {given}"
        )
    elif overwrite is None:
        report = table.upsert(rows, upsert_by, kinds=kinds)
    else:
        raise InvalidRequestError(
            "--upsert-by and --overwrite exclude each other: leave one of them out"
        )
    return report


def _made_first(context: typer.Context, missing: str) -> str | None:
    """Return advice with the command that creates the table ``missing``, or its branch if only the
    branch is missing.

    Return None for the path of a directory, for a missing warehouse, and for a table that the
    catalog lists although its files are missing.
    """
    from lakeformat.catalog.names import BRANCH_PREFIX

    table, _, suffixes = missing.partition("$")
    branch = suffixes.partition("$")[0]
    if branch.startswith(BRANCH_PREFIX):
        with suppress(NotFoundError):
            named_table_of_any_format(context, table)
            name = branch.removeprefix(BRANCH_PREFIX)
            words = shlex.join(["lake", "branch", "create", table, name])
            return f"Create the branch first: {copyable(context, words)}"
    if "/" in missing:
        return None
    try:
        if is_listed(existing_catalog_of_any_format(context), missing):
            return None
    except NotFoundError:  # its error names the next step
        return None
    words = f"lake create-table {shlex.quote(table)} --column 'id BIGINT' --column 'dt STRING'"
    made = copyable(context, words)
    return f"If the table is new, create it first, with the columns of your rows: {made}"


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
    pairs = [text.partition("=") for text in texts]
    if not all(name and equals for name, equals, _ in pairs):
        raise InvalidRequestError(refusal)
    return named_once("column", ((name.strip(), value) for name, _, value in pairs))
