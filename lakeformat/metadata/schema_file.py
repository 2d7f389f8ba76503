"""Schema files: ``schema/schema-<n>``, written once, the highest number is in force."""

from __future__ import annotations

from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.layout import TableLayout, numbered
from lakeformat.metadata.json_file import decode_json_file
from lakeformat.schema import TableSchema
from lakeformat.storage import Storage

__all__ = ["create_schema", "latest_schema_id", "read_schema", "table_exists"]


def table_exists(storage: Storage, layout: TableLayout) -> bool:
    """A directory is a table as soon as it holds one schema."""
    return latest_schema_id(storage, layout) is not None


def latest_schema_id(storage: Storage, layout: TableLayout) -> int | None:
    """The number of the schema in force; None when the table does not exist."""
    names = (info.name for info in storage.list(layout.schema_directory))
    numbers = [n for n in (numbered(name, "schema-") for name in names) if n is not None]
    return max(numbers, default=None)


def read_schema(storage: Storage, layout: TableLayout, schema_id: int) -> TableSchema:
    """One schema version."""
    path = layout.schema(schema_id)
    try:
        content = storage.read(path)
    except NotFoundError:
        raise CorruptTableError(
            f"schema {schema_id} is missing: {storage.uri(path)}; "
            "restore the file, data written under it cannot be read without it"
        ) from None
    return decode_json_file(content, storage.uri(path), TableSchema.from_json)


def create_schema(storage: Storage, layout: TableLayout, schema: TableSchema) -> bool:
    """Publish a schema version; False if its number is taken."""
    return storage.create(layout.schema(schema.id), schema.to_json())
