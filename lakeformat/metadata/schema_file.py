"""Schema files: ``schema/schema-<n>``, written once, the highest number is in force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lakeformat.environment import Environment
from lakeformat.errors import (
    CommitConflictError,
    CorruptTableError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.layout import TableLayout, numbered
from lakeformat.metadata.json_file import decode_json_file
from lakeformat.metadata.snapshot_directory import snapshot_ids
from lakeformat.schema import TableSchema
from lakeformat.schema_changes import SchemaChange, apply_changes
from lakeformat.storage import Storage
from lakeformat.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

__all__ = [
    "alter_schema",
    "create_schema",
    "latest_schema_id",
    "read_schema",
    "schema_ids",
    "table_exists",
]

MAX_LOST_RACES = 20


def table_exists(storage: Storage, layout: TableLayout) -> bool:
    """A directory is a table as soon as it holds one schema."""
    return latest_schema_id(storage, layout) is not None


def schema_ids(storage: Storage, layout: TableLayout) -> list[int]:
    """The numbers of all schemas, ascending."""
    names = (info.name for info in storage.list(layout.schema_directory))
    return sorted(n for n in (numbered(name, "schema-") for name in names) if n is not None)


def latest_schema_id(storage: Storage, layout: TableLayout) -> int | None:
    """The number of the schema in force; None when the table does not exist."""
    return max(schema_ids(storage, layout), default=None)


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
    schema = decode_json_file(content, storage.uri(path), _checked)
    if schema.id != schema_id:
        raise CorruptTableError(
            f"{storage.uri(path)} says it is schema {schema.id}; "
            "restore the file, data written under it cannot be read without it"
        )
    return schema


def create_schema(storage: Storage, layout: TableLayout, schema: TableSchema) -> bool:
    """Publish a schema version; False if its number is taken."""
    return storage.create(layout.schema(schema.id), schema.to_json())


def alter_schema(
    storage: Storage,
    layout: TableLayout,
    changes: Sequence[SchemaChange],
    environment: Environment,
) -> TableSchema:
    """Publish a schema that differs from the newest by ``changes``, all of them or none.

    Where another writer was first, the changes are checked again on its schema. Changes that
    change nothing write nothing.
    """
    for _ in range(MAX_LOST_RACES):
        current = _schema_in_force(storage, layout)
        altered = apply_changes(
            current,
            changes,
            has_snapshots=bool(snapshot_ids(storage, layout)),
            now=environment.now_millis(),
        )
        if altered is current or _publish(storage, layout, altered):
            return altered
    raise CommitConflictError(
        f"the schema of {storage.uri(layout.root)} was changed by others {MAX_LOST_RACES} times "
        "while this change was tried; nothing was changed, try again"
    )


def _schema_in_force(storage: Storage, layout: TableLayout) -> TableSchema:
    latest = latest_schema_id(storage, layout)
    if latest is None:
        raise NotFoundError(f"{storage.uri(layout.root)} is not a table: it has no schema file")
    return read_schema(storage, layout, latest)


def _publish(storage: Storage, layout: TableLayout, schema: TableSchema) -> bool:
    """Whether the schema is in place now; a lost answer is found by reading the file back."""
    try:
        return create_schema(storage, layout, schema)
    except UnavailableError:
        try:
            return storage.read(layout.schema(schema.id)) == schema.to_json()
        except NotFoundError:
            pass  # it was not published: the failure is the answer
        raise


def _checked(members: Mapping[str, Any]) -> TableSchema:
    """A schema, or ``ValueError`` when it holds what no writer can have meant."""
    try:
        schema = TableSchema.from_json(members)
        ids = [field.id for field in _all_fields(schema.fields)]
    except RecursionError:
        raise ValueError("its types are nested too deeply") from None
    numbers = (schema.id, schema.version, schema.time_millis, schema.highest_field_id, *ids)
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
        raise ValueError("a number is negative, too large or no whole number")
    for text in _texts(schema):
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no text")
        text.encode()  # half of a surrogate pair is no text
    _refuse_repeated("field id", ids)
    _refuse_repeated("column", schema.column_names)
    for key in (*schema.partition_keys, *schema.primary_keys):
        if key not in schema.column_names:
            raise ValueError(f"its key {key!r} is no column")
    return schema


def _texts(schema: TableSchema) -> Iterator[object]:
    yield from (*schema.partition_keys, *schema.primary_keys)
    yield from (*schema.options, *schema.options.values())
    yield schema.comment or ""
    for field in _all_fields(schema.fields):
        yield from (field.name, field.description or "", field.default_value or "")


def _refuse_repeated(what: str, values: Iterable[object]) -> None:
    for value, times in Counter(values).items():
        if times > 1:
            raise ValueError(f"its {what} {value!r} is there {times} times")


def _all_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Columns and the fields of every ROW inside them."""
    for field in fields:
        yield field
        yield from _fields_inside(field.type)


def _fields_inside(data_type: DataType) -> Iterator[DataField]:
    match data_type:
        case RowType(fields=fields):
            yield from _all_fields(fields)
        case ArrayType(element=part) | VectorType(element=part) | MultisetType(element=part):
            yield from _fields_inside(part)
        case MapType(key=key, value=value):
            yield from _fields_inside(key)
            yield from _fields_inside(value)
