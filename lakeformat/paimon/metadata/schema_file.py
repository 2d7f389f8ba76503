# SPDX-License-Identifier: Apache-2.0
"""Schema files ``schema/schema-<n>``: never rewritten; the highest number is the newest schema."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakeformat.environment import Environment
from lakeformat.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
)
from lakeformat.paimon.layout import MAIN_BRANCH, TableLayout, numbered
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.paimon.metadata.snapshot import Snapshot
from lakeformat.paimon.metadata.snapshot_directory import snapshot_ids
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import Storage
from lakeformat.tables.create_once import create_or_find
from lakeformat.tables.json_file import decode_json_file, newer_version
from lakeformat.types.types import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

if TYPE_CHECKING:
    from lakeformat.paimon.schema_changes.changes import SchemaChange

__all__ = [
    "alter_schema",
    "create_schema",
    "latest_schema_id",
    "naming_schema",
    "read_schema",
    "require_schema_of",
    "schema_ids",
    "table_exists",
    "table_identity",
]

MAX_LOST_RACES = 20
NEWEST_VERSION = 3
FIRST_ID = 0


def table_exists(storage: Storage, layout: TableLayout) -> bool:
    """Return True if the directory has at least one schema file, which makes it a table."""
    return bool(_numbers(storage, layout))


def schema_ids(storage: Storage, layout: TableLayout) -> list[int]:
    """Return the numbers of all schemas, ascending.

    Raise CorruptTableError if a schema below the newest is missing. On a branch other than main,
    the oldest existing schema may have any number.
    """
    found = _numbers(storage, layout)
    # Java up to 0.9 copied only the newest schema to a new branch.
    first = FIRST_ID if layout.branch == MAIN_BRANCH else min(found, default=FIRST_ID)
    for number in sorted({*range(first, max(found, default=first))}.difference(found)):
        # A listing while two schemas are created may contain only the second one.
        if not storage.exists(layout.schema(number)):
            raise CorruptTableError(
                f"{storage.uri(layout.schema(number))} is missing, although schema "
                f"{found[-1]} exists and no writer deletes older ones; {Remedy.SCHEMA}"
            )
    return found


def table_identity(storage: Storage, layout: TableLayout) -> str:
    """Return a hash of the first schema file; "" if there is no schema.

    The file contains its creation time, so a table that is created again has another hash.
    """
    known = schema_ids(storage, layout)
    return hashlib.sha256(storage.read(layout.schema(known[0]))).hexdigest() if known else ""


def _numbers(storage: Storage, layout: TableLayout) -> list[int]:
    names = (info.name for info in storage.list(layout.schema_directory))
    return sorted(n for n in (numbered(name, "schema-") for name in names) if n is not None)


def latest_schema_id(storage: Storage, layout: TableLayout) -> int | None:
    """Return the number of the newest schema; None if the table does not exist."""
    return max(schema_ids(storage, layout), default=None)


def read_schema(storage: Storage, layout: TableLayout, schema_id: int) -> TableSchema:
    """Return the schema ``schema-<schema_id>``.

    Raise CorruptTableError if its file is missing or damaged.
    """
    path = layout.schema(schema_id)
    try:
        content = storage.read(path)
    except NotFoundError:
        raise CorruptTableError(
            f"schema {schema_id} is missing: {storage.uri(path)}; {Remedy.SCHEMA}"
        ) from None
    schema = decode_json_file(content, storage.uri(path), _checked, Remedy.SCHEMA)
    if schema.id != schema_id:
        raise CorruptTableError(
            f"{storage.uri(path)} contains schema {schema.id} instead of schema {schema_id}; "
            f"{Remedy.SCHEMA}"
        )
    return schema


@contextmanager
def naming_schema(storage: Storage, layout: TableLayout, schema_id: int) -> Iterator[None]:
    """Add the URI of a schema file to an InvalidRequestError that the block raises.

    The new message reports that the schema names an invalid place for data files, such as an
    external path. So the block must not raise InvalidRequestError for any other reason.
    """
    try:
        yield
    except InvalidRequestError as reason:
        raise InvalidRequestError(
            f"{storage.uri(layout.schema(schema_id))} names an invalid place for data files: "
            f"{reason}. Nothing was changed. Find out which program wrote this schema, and correct "
            "the option in the file"
        ) from None


def require_schema_of(
    storage: Storage, layout: TableLayout, snapshot: Snapshot, *, known: int
) -> None:
    """Raise CorruptTableError if the schema file of a snapshot is missing.

    Without this check, an older schema would be used, and columns that were added since would be
    lost. ``known`` is the number of a schema that the caller has already read.
    """
    if snapshot.schema_id == known:
        return
    latest = latest_schema_id(storage, layout)
    if latest is None or snapshot.schema_id > latest:
        newest = "no schema exists" if latest is None else f"the newest schema is {latest}"
        raise CorruptTableError(
            f"snapshot {snapshot.id} of {storage.uri(layout.root)} was committed under schema "
            f"{snapshot.schema_id}, but {newest}; {Remedy.SCHEMA}"
        )
    if not storage.exists(layout.schema(snapshot.schema_id)):
        read_schema(storage, layout, snapshot.schema_id)


def create_schema(storage: Storage, layout: TableLayout, schema: TableSchema) -> bool:
    """Write ``schema-<schema.id>``; return False if this file exists.

    Raise InvalidRequestError, and write nothing, if no reader could read the schema.
    """
    content = _encoded(storage, layout, schema)
    try:
        return storage.create(layout.schema(schema.id), content)
    except NotFoundError:
        if schema.id != FIRST_ID:
            raise  # the table was renamed or dropped
        storage.make_directory(layout.schema_directory.rpartition("/")[0])
        return storage.create(layout.schema(schema.id), content)


def _encoded(storage: Storage, layout: TableLayout, schema: TableSchema) -> bytes:
    """Return the content of a schema file; raise InvalidRequestError if it would be unreadable."""
    content = schema.to_json()
    try:
        _checked(json.loads(content))
    except (ValueError, TypeError, AttributeError, RecursionError, InvalidRequestError) as reason:
        raise InvalidRequestError(
            f"the new schema of {storage.uri(layout.root)} would be unreadable: {reason}. Nothing "
            "was changed: correct the columns or options"
        ) from None
    return content


def alter_schema(
    storage: Storage,
    layout: TableLayout,
    changes: Sequence[SchemaChange],
    environment: Environment,
    checked: Callable[[TableSchema, TableSchema], TableSchema] | None = None,
) -> TableSchema:
    """Apply ``changes`` to the newest schema, write the result as a new schema file, and return it.

    If the changes have no effect, write nothing, and return the newest schema. ``checked`` gets the
    schemas before and after the changes. It returns the schema to write, or raises the error with
    which it refuses the changes.

    Raise NotFoundError if the table does not exist. If another writer writes a schema first, the
    changes are applied to that schema. Raise CommitConflictError after 20 such attempts. If another
    program renamed or dropped the table meanwhile, delete the new schema file and raise
    CommitConflictError.
    """
    from lakeformat.paimon.schema_changes.apply import apply_changes

    for _ in range(MAX_LOST_RACES):
        first = _first_schema(storage, layout)
        current = _schema_in_force(storage, layout)
        altered = apply_changes(
            current,
            changes,
            has_snapshots=bool(snapshot_ids(storage, layout)),
            now=environment.now_millis(),
        )
        if altered is current:
            return altered
        if checked is not None:
            altered = checked(current, altered)
        content = _encoded(storage, layout, altered)
        if create_or_find(storage, layout.schema(altered.id), content):
            _require_same_table(storage, layout, first, altered)
            return altered
    raise CommitConflictError(
        f"other writers changed the schema of {storage.uri(layout.root)} {MAX_LOST_RACES} times "
        "during this change, so the change was not made: retry it"
    )


def _schema_in_force(storage: Storage, layout: TableLayout) -> TableSchema:
    latest = latest_schema_id(storage, layout)
    if latest is None:
        raise NotFoundError(
            f"{storage.uri(layout.root)} is not a table: it has no schema file; check the path, or "
            "create the table through a catalog"
        )
    return read_schema(storage, layout, latest)


def _first_schema(storage: Storage, layout: TableLayout) -> bytes | None:
    """Return the content of the first schema file; None if there is none.

    A table that is later created at the same path has a different first schema.
    """
    known = schema_ids(storage, layout)
    try:
        return storage.read(layout.schema(known[0])) if known else None
    except NotFoundError:
        return None


def _require_same_table(
    storage: Storage, layout: TableLayout, first: bytes | None, published: TableSchema
) -> None:
    """Raise CommitConflictError if the table was renamed or dropped meanwhile.

    In this case, the schema file of ``published`` is deleted before the error is raised. ``first``
    is the expected content of the first schema file; any other content means that this is not the
    same table. The check follows the creation of the new file: no storage can create a file only on
    the condition that another file is unchanged.
    """
    path = layout.schema(published.id)
    try:
        found = _first_schema(storage, layout)
    except CorruptTableError:
        found = None  # The table was moved or dropped, and only the published schema is here.
    if found == first:
        return
    storage.delete(path)
    raise CommitConflictError(
        f"{storage.uri(layout.root)} is not the table it was when this change began: another "
        "program renamed or dropped it meanwhile. Nothing was changed. If it was renamed, open "
        "it under its new name and repeat the change"
    )


def _checked(members: Mapping[str, Any]) -> TableSchema:
    """Return the schema of a parsed file.

    Raise ValueError for values that no writer writes, and UnsupportedError for a newer version.
    """
    version = members.get("version")
    if isinstance(version, int) and NEWEST_VERSION < version < 1 << 63:
        raise newer_version("schema", version, NEWEST_VERSION)
    try:
        schema = TableSchema.from_json(members)
        ids = [field.id for field in _all_fields(schema.fields)]
    except RecursionError:
        raise ValueError("its types are nested too deeply") from None
    numbers = (schema.id, schema.version, schema.time_millis, schema.highest_field_id, *ids)
    for number in numbers:
        if type(number) is not int or not 0 <= number < 1 << 63:
            raise ValueError(
                f"its id, version, timeMillis, highestFieldId or the id of a field is {number!r}, "
                f"but must be a whole number from 0 to {(1 << 63) - 1}"
            )
    for text in _texts(schema):
        if not isinstance(text, str):
            raise ValueError(
                f"one of its names, keys, options, default values and comments is {text!r}, not "
                "text"
            )
        text.encode()  # half of a surrogate pair is not text
    _refuse_repeated("field id", ids)
    _refuse_repeated("column", schema.column_names)
    for key in (*schema.partition_keys, *schema.primary_keys):
        if key not in schema.column_names:
            raise ValueError(f"its key {key!r} is not a column")
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
            raise ValueError(f"its {what} {value!r} occurs {times} times")


def _all_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
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
