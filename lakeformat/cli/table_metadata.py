"""``lake files`` and its siblings: one command per system table, each of them declared here.

They print what ``catalog.table("shop.orders$files")`` holds: a few columns for people, all of
them for programs. The newest row stands last, next to the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from lakeformat.cli.output import AsJson, Shown, print_rows, size
from lakeformat.cli.warehouse import WarehouseOption, named_table
from lakeformat.system_tables import find_system_table

__all__ = ["register"]

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="database.table, a branch as 'database.table$branch_dev', or the table's directory",
    ),
]
SnapshotOption = Annotated[
    int | None, typer.Option(help="Show this snapshot instead of the newest one.")
]
TagOption = Annotated[
    str | None, typer.Option(help="Show the snapshot of this tag instead of the newest one.")
]


@dataclass(frozen=True, slots=True)
class MetadataCommand:
    """A command that prints one system table."""

    name: str
    columns: Sequence[Shown]
    nothing: str
    """What a table without any row has none of."""
    system_table: str = ""

    @property
    def table_name(self) -> str:
        """What the system table is called."""
        return self.system_table or self.name


def register(app: typer.Typer) -> None:
    """Add a command for each system table."""
    for command in COMMANDS:
        declared = find_system_table(command.table_name)
        run = _of_snapshot(command) if declared.of_snapshot else _of_table(command)
        app.command(command.name, help=declared.meaning)(run)


def _of_table(command: MetadataCommand) -> Callable[..., None]:
    def run(
        context: typer.Context,
        table: TableArgument,
        warehouse: WarehouseOption = None,
        as_json: AsJson = False,
    ) -> None:
        _print(command, context, table, warehouse, as_json=as_json)

    return run


def _of_snapshot(command: MetadataCommand) -> Callable[..., None]:
    def run(
        context: typer.Context,
        table: TableArgument,
        snapshot: SnapshotOption = None,
        tag: TagOption = None,
        warehouse: WarehouseOption = None,
        as_json: AsJson = False,
    ) -> None:
        _print(command, context, table, warehouse, as_json=as_json, snapshot=snapshot, tag=tag)

    return run


def _print(
    command: MetadataCommand,
    context: typer.Context,
    table: str,
    warehouse: str | None,
    *,
    as_json: bool,
    snapshot: int | None = None,
    tag: str | None = None,
) -> None:
    found = named_table(context, warehouse, table).system_table(command.table_name)
    columns = None if as_json else [shown.key for shown in command.columns]
    rows = found.scan(columns, snapshot=snapshot, tag=tag).to_arrow()
    empty = f"{table} has no {command.nothing}"
    print_rows(command.columns, _plain(rows), as_json=as_json, empty=empty)


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows whose times are ISO text, of any year."""
    columns = [
        pc.replace_substring(column.cast(pa.string()), " ", "T")
        if pa.types.is_timestamp(column.type)
        else column
        for column in rows.columns
    ]
    plain: list[dict[str, Any]] = pa.table(columns, rows.column_names).to_pylist()
    return plain


def _in_braces(partition: str) -> str:
    return "" if partition == "{}" else partition


def _instant(text: str) -> str:
    return f"{text.replace('T', ' ')}Z"


def _second(text: str) -> str:
    """A time to the second; whose clock it is, nobody knows."""
    return text.replace("T", " ").partition(".")[0]


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _columns(fields: str) -> str:
    return ", ".join(f"{field['name']} {_type_text(field['type'])}" for field in json.loads(fields))


def _type_text(column_type: Any) -> str:
    """A type in the words of SQL."""
    if isinstance(column_type, str):
        return column_type
    kind, _, rest = column_type["type"].partition(" ")
    parts = [
        _type_text(column_type[part]) for part in ("key", "value", "element") if part in column_type
    ]
    parts += [f"{f['name']} {_type_text(f['type'])}" for f in column_type.get("fields", ())]
    return f"{kind}<{', '.join(parts)}>{' ' if rest else ''}{rest}"


def _names(keys: str) -> str:
    return ", ".join(json.loads(keys))


def _column_statistics(statistics: str) -> str:
    """One line per column, such as ``id: 2 distinct, 0 null, 1 … 30``."""
    lines = []
    for name, found in json.loads(statistics).items():
        counts = [("distinctCount", "distinct"), ("nullCount", "null")]
        said = [f"{found[key]} {word}" for key, word in counts if key in found]
        if "min" in found and "max" in found:
            said.append(f"{found['min']} … {found['max']}")
        lines.append(f"{name}: {', '.join(said)}")
    return "\n".join(lines)


_ROWS = Shown("record_count", "rows")
_SIZE = Shown("file_size_in_bytes", "size", size)
_PARTITION = Shown("partition", "partition", _in_braces)
_BUCKET = Shown("bucket", "bucket")

COMMANDS = (
    MetadataCommand(
        "snapshots",
        (
            Shown("snapshot_id", "id"),
            Shown("commit_time", "time", _instant),
            Shown("commit_kind", "kind"),
            Shown("delta_record_count", "added rows"),
            Shown("total_record_count", "total rows"),
            Shown("commit_user", "commit user"),
            Shown("commit_identifier", "identifier"),
        ),
        nothing="snapshot yet",
    ),
    MetadataCommand(
        "schemas",
        (
            Shown("schema_id", "id"),
            Shown("update_time", "time", _instant),
            Shown("primary_keys", "primary key", _names),
            Shown("partition_keys", "partitioned by", _names),
            Shown("fields", "columns", _columns),
        ),
        nothing="schema",
    ),
    MetadataCommand(
        "options",
        (Shown("key", "option"), Shown("value", "value")),
        nothing="option of its own",
    ),
    MetadataCommand(
        "manifests",
        (
            Shown("file_name", "manifest"),
            Shown("file_size", "size", size),
            Shown("num_added_files", "added files"),
            Shown("num_deleted_files", "deleted files"),
            Shown("min_partition_stats", "from partition", _in_braces),
            Shown("max_partition_stats", "to partition", _in_braces),
        ),
        nothing="manifest",
    ),
    MetadataCommand(
        "files",
        (
            _PARTITION,
            _BUCKET,
            Shown("level", "level"),
            _ROWS,
            _SIZE,
            Shown("creation_time", "created", _second),
            Shown("min_key", "from key"),
            Shown("max_key", "to key"),
            Shown("file_path", "file", _file_name),
        ),
        nothing="data file",
    ),
    MetadataCommand(
        "partitions",
        (
            _PARTITION,
            _ROWS,
            Shown("deleted_record_count", "deleted rows"),
            Shown("file_count", "files"),
            _SIZE,
            Shown("last_update_time", "updated", _second),
        ),
        nothing="partition",
    ),
    MetadataCommand(
        "buckets",
        (
            _PARTITION,
            _BUCKET,
            _ROWS,
            Shown("file_count", "files"),
            _SIZE,
            Shown("last_update_time", "updated", _second),
        ),
        nothing="bucket",
    ),
    MetadataCommand(
        "tags",
        (
            Shown("tag_name", "tag"),
            Shown("snapshot_id", "snapshot"),
            Shown("commit_time", "committed", _instant),
            Shown("record_count", "rows"),
            Shown("create_time", "created", _second),
            Shown("time_retained", "retained"),
        ),
        nothing="tag",
    ),
    MetadataCommand(
        "branches",
        (Shown("branch_name", "branch"), Shown("create_time", "created", _instant)),
        nothing="branch",
    ),
    MetadataCommand(
        "consumers",
        (Shown("consumer_id", "consumer"), Shown("next_snapshot_id", "next snapshot")),
        nothing="consumer",
    ),
    MetadataCommand(
        "statistics",
        (
            Shown("snapshot_id", "snapshot"),
            Shown("mergedRecordCount", "rows"),
            Shown("mergedRecordSize", "size", size),
            Shown("colstat", "columns", _column_statistics),
        ),
        nothing="statistics",
    ),
    MetadataCommand(
        "indexes",
        (
            _PARTITION,
            _BUCKET,
            Shown("index_type", "type"),
            Shown("row_count", "entries"),
            Shown("file_size", "size", size),
            Shown("file_name", "file"),
        ),
        nothing="index",
        system_table="table_indexes",
    ),
)
