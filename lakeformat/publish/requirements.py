# SPDX-License-Identifier: Apache-2.0
"""Checks that the schema and the options of a Paimon table can be published as Iceberg metadata."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lakeformat.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lakeformat.iceberg.schema import Schema
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.schema import TableSchema
from lakeformat.publish.narrowed_types import narrowed_columns
from lakeformat.publish.published_schemas import PublishedSchemas
from lakeformat.publish.schemas import iceberg_schema, require_promotions

__all__ = [
    "WRITE_PARQUET",
    "require_publishable",
    "require_publishable_at_first",
    "require_publishable_change",
    "require_publishable_history",
    "unpublishable_reason",
    "warn_of_narrowed_types",
]

WRITE_PARQUET = (
    "set 'file.format' to 'parquet'. If the table has rows, overwrite it with them: scan = "
    "table.scan(), then table.write(scan.to_arrow(), overwrite='table', "
    "read_snapshot=scan.snapshot_id). (`lake compact` with --strategy full is not enough: it does "
    "not rewrite the only file of a bucket, large files of an append table, or files on the "
    "highest level)"
)
"""The advice for data files of another format."""

_ONLY = {
    "chain-table.enabled": "false",
    "data-evolution.enabled": "false",
}
"""The only value that an option may have in a published table, by the key of the option.

Chain tables are not published, because their rows are merged from two branches.
"""


def require_publishable(schema: TableSchema) -> None:
    """Raise ``UnsupportedError`` if tables with this schema cannot be published."""
    given = {key: value.strip().lower() for key, value in schema.options.items()}
    for key, only in _ONLY.items():
        if given.get(key, only) != only:
            raise UnsupportedError(
                f"the option {key!r} is {schema.options[key]!r}, and Iceberg metadata is published "
                f"only with {only!r}: create a table without this option, and copy the rows"
            )
    options = schema.table_options
    formats = {options.file_format, *options.file_format_per_level.values()}
    if formats != {"parquet"}:
        by_level = "remove 'file.format.per.level' and " if options.file_format_per_level else ""
        raise UnsupportedError(
            f"the table's data files are written as {', '.join(sorted(formats))}, but only "
            f"Parquet files are published: {by_level}{WRITE_PARQUET}"
        )
    iceberg_schema(schema, options.iceberg_format_version)


def require_publishable_history(handle: TableHandle, known: Mapping[int, Schema]) -> None:
    """Raise ``UnsupportedError`` if the type of a column once changed in a way that readers of
    Iceberg cannot follow.

    ``known`` has the schemas that are published already, by their ids. A missing schema raises no
    error here, because the publication raises it.
    """
    with suppress(CorruptTableError):
        PublishedSchemas(handle, handle.options.iceberg_format_version).all_of(known)


def warn_of_narrowed_types(handle: TableHandle) -> None:
    """Log a warning for each column that once got a narrower type, if the table has snapshots."""
    if latest_snapshot(handle.storage, handle.layout) is None:
        return
    with suppress(CorruptTableError):
        PublishedSchemas(handle, handle.options.iceberg_format_version).warn_of_narrowed(())


def unpublishable_reason(handle: TableHandle, known: Mapping[int, Schema]) -> str | None:
    """Return the reason why the table cannot be published; None if it can be.

    An option with an invalid value is also a reason. ``known`` has the schemas that are published
    already, by their ids.
    """
    try:
        require_publishable(handle.schema)
        require_publishable_history(handle, known)
    except (InvalidRequestError, UnsupportedError) as reason:
        return str(reason)
    return None


def require_publishable_at_first(handle: TableHandle) -> None:
    """Raise ``UnsupportedError`` if a table without snapshots cannot be published.

    A table with snapshots is not checked.
    """
    try:
        require_publishable(handle.schema)
    except UnsupportedError:
        if latest_snapshot(handle.storage, handle.layout) is None:
            raise


def require_publishable_change(before: TableSchema, after: TableSchema) -> None:
    """Raise ``UnsupportedError`` if a published table cannot be published after a change of its
    schema.

    Every change is allowed in a table whose publication was impossible before, because the change
    may be one of the steps that make it possible.
    """
    was_published = before.table_options.publishes_iceberg
    if was_published and not _is_publishable(before):
        return
    require_publishable(after)
    if was_published:
        version = after.table_options.iceberg_format_version
        require_promotions(iceberg_schema(before, version), iceberg_schema(after, version))
        if narrowed := next(narrowed_columns(before, after), None):
            raise UnsupportedError(
                f"{narrowed}. Readers of Iceberg do not convert the values in older files, so they "
                "would read other values than this library. Nothing was changed: add a column of "
                "the new type instead"
            )


def _is_publishable(schema: TableSchema) -> bool:
    try:
        require_publishable(schema)
    except (InvalidRequestError, UnsupportedError):
        return False
    return True
