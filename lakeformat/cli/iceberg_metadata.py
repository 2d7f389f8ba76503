# SPDX-License-Identifier: Apache-2.0
"""Prints system tables of Iceberg and Mixed tables, with the columns of their formats."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from lakeformat.cli.iceberg_advice import advice_for
from lakeformat.cli.output import print_json
from lakeformat.cli.plain_values import plain_rows
from lakeformat.cli.write_row_files import plain_value, print_table
from lakeformat.errors import UnsupportedError
from lakeformat.tables.credential_options import shown_options

__all__ = ["print_iceberg_metadata"]

_SHOWN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "iceberg": {
        "snapshots": ("committed_at", "snapshot_id", "parent_id", "operation"),
        "manifests": (
            "path",
            "content",
            "length",
            "partition_spec_id",
            "added_data_files_count",
            "deleted_data_files_count",
            "added_delete_files_count",
        ),
        "files": (
            "partition",
            "content",
            "file_format",
            "record_count",
            "file_size_in_bytes",
            "file_path",
        ),
        "partitions": (
            "partition",
            "record_count",
            "file_count",
            "total_data_file_size_in_bytes",
            "position_delete_file_count",
            "equality_delete_file_count",
            "last_updated_at",
        ),
    },
}
"""The columns that a terminal shows, by format and command; default: all, as with --json."""
_PATHS = ("path", "file_path")
_REFERENCES = {"tags": "TAG", "branches": "BRANCH"}


def print_iceberg_metadata(
    table: lake.IcebergTable | lake.MixedTable,
    command: str,
    limit: int | None,
    *,
    as_json: bool,
    snapshot: int | None,
    tag: str | None,
) -> None:
    """Print a system table of ``table``: the one for ``command``, such as ``files``.

    With ``limit``, only the last ``limit`` rows are printed. If the format has no such table,
    ``UnsupportedError`` is raised; its message has advice.
    """
    rows = _rows(table, command, snapshot, tag)
    if limit is not None:
        rows = rows.slice(max(rows.num_rows - limit, 0))
    if as_json:
        print_json(plain_rows(rows), plain_value)
        return
    names = _SHOWN.get(table.format, {}).get(command, tuple(rows.column_names))
    shown = rows.select([name for name in names if name in rows.column_names])
    print_table(_with_short_paths(shown, table))


def _with_short_paths(rows: pa.Table, table: lake.IcebergTable | lake.MixedTable) -> pa.Table:
    """Return the rows with paths relative to the directory of the table.

    The paths of a Mixed table are relative to the directory above both stores.
    """
    directories = [unquote(urlsplit(each).path) for each in table.locations]
    root = re.escape(os.path.commonpath(directories))
    for place, name in enumerate(rows.column_names):
        if name in _PATHS:
            short = pc.replace_substring_regex(rows.column(name), f"^[^/]*/*?{root}/", "")
            rows = rows.set_column(place, name, short)
    return rows


def _rows(
    table: lake.IcebergTable | lake.MixedTable,
    command: str,
    snapshot: int | None,
    tag: str | None,
) -> pa.Table:
    if command == "options":
        options = shown_options(table.properties)
        columns = {"key": options.keys(), "value": options.values()}
        return pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()})
    if command in _REFERENCES and "refs" in table.system_tables:
        found: pa.Table = table.system_table("refs").scan().to_arrow()
        return found.filter(pc.equal(found.column("type"), _REFERENCES[command]))
    if command not in table.system_tables:
        raise UnsupportedError(
            f"{table.location} is {table.kind}, which has nothing for `lake {command}` to show"
            f"{_instead(table, command)}"
        )
    shown: pa.Table = table.system_table(command).scan(snapshot=snapshot, tag=tag).to_arrow()
    return shown


def _instead(table: lake.IcebergTable | lake.MixedTable, command: str) -> str:
    change = getattr(table, "change", None)  # only a Mixed table has stores
    if change is not None and command in change.system_tables:
        return f": name one of its stores, as '{table.location}$base' or '{table.location}$change'"
    return f": {advice_for(table.format, command, table.location)}"
