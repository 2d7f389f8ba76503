"""What every operation on one table needs: where it is, what it looks like, the world outside."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.environment import Environment
from lakeformat.errors import UnsupportedError
from lakeformat.layout import TableLayout
from lakeformat.options import TableOptions, require_unaware_buckets
from lakeformat.schema import TableSchema
from lakeformat.storage import Storage

__all__ = ["TableHandle", "require_committable", "require_readable", "require_writable"]

UNAWARE_BUCKET = -1
_CHANGE_MERGED_ROWS = {
    "deduplicate.ignore-delete",
    "first-row.ignore-delete",
    "ignore-delete",
    "ignore-update-before",
    "partial-update.ignore-delete",
    "pk-clustering-override",
    "record-level.expire-time",
    "sequence.field",
    "sequence.field.sort-order",
    "sequence.snapshot-ordering",
}
_CHANGE_ANY_ROWS = {"scan.fallback-branch", "scan.primary-branch"}
_TABLE_TYPE, _PLAIN_TABLE = "type", "table"


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table as it was opened; the schema is the newest of that moment."""

    storage: Storage
    layout: TableLayout
    schema: TableSchema
    environment: Environment

    @property
    def options(self) -> TableOptions:
        return self.schema.table_options

    @property
    def uri(self) -> str:
        """How messages name the table."""
        return self.storage.uri(self.layout.root)


def is_unaware(handle: TableHandle) -> bool:
    """Whether this is an append table without buckets."""
    return not handle.schema.primary_keys and handle.options.bucket == UNAWARE_BUCKET


def require_readable(handle: TableHandle) -> None:
    """Refuse a table whose rows this version would read otherwise than its options say."""
    options = handle.options
    for key in options.unknown():
        if options.to_dict()[key].strip().lower() != "false" and _changes_rows(handle, key):
            raise UnsupportedError(
                f"{handle.uri} sets {key!r}, which decides what its rows are; "
                "this version does not know it and would give wrong rows"
            )
    engine = options.text(TableOptions.merge_engine)
    if handle.schema.primary_keys and engine.lower() != "deduplicate":
        raise UnsupportedError(
            f"{handle.uri} has the merge engine {engine!r}; "
            "this version merges rows by 'deduplicate' only"
        )


def _changes_rows(handle: TableHandle, key: str) -> bool:
    if key in _CHANGE_ANY_ROWS:
        return True
    if key == _TABLE_TYPE:
        return handle.options.to_dict()[key].strip().lower() != _PLAIN_TABLE
    if not handle.schema.primary_keys:
        return False
    return key in _CHANGE_MERGED_ROWS or key.endswith(".sequence-group")


def require_committable(handle: TableHandle) -> None:
    """Refuse to publish where an option asks for something this version would not do."""
    unknown = handle.options.unknown()
    if unknown:
        raise UnsupportedError(
            f"{handle.uri} sets {', '.join(map(repr, unknown))}, which this version cannot honour "
            "when writing; nothing was written, reading still works"
        )
    handle.options.validate()


def require_writable(handle: TableHandle) -> None:
    """Refuse to write rows where an option asks for something this version would not do."""
    schema = handle.schema
    if schema.primary_keys:
        raise UnsupportedError(f"{handle.uri} has a primary key: this version does not write it")
    if schema.partition_keys:
        keys = ", ".join(schema.partition_keys)
        raise UnsupportedError(
            f"{handle.uri} is partitioned by {keys}: this version does not write partitions"
        )
    require_unaware_buckets(handle.options, handle.uri)
    require_committable(handle)
