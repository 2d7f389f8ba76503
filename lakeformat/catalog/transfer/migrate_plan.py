# SPDX-License-Identifier: Apache-2.0
"""Decides for each plain file: register it in place, copy it, or rewrite it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from lakeformat.catalog.transfer.plain_files import MigratedFile, PlainDirectory
from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.files.field_ids import PARQUET_ID
from lakeformat.files.file_format import FileFormat
from lakeformat.paimon.binary_row import encode_row, frame_row
from lakeformat.paimon.partition import partition_fields
from lakeformat.paimon.partition_filter import is_exact
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import Storage, resolve
from lakeformat.types.arrow_types import (
    from_arrow_type,
    to_arrow_schema,
    to_arrow_type,
    type_of_column,
)
from lakeformat.types.casts import cast_array
from lakeformat.types.sentence import sentence
from lakeformat.types.type_text import parse_type, type_to_json
from lakeformat.types.types import STRING, AtomicType, DataField, DataType
from lakeformat.types.value_text import cast_text
from lakeformat.types.values import values_from_arrow

__all__ = [
    "CONVERTED",
    "COPIED",
    "REGISTERED",
    "SourceFile",
    "address_of",
    "choose",
    "columns_of",
    "partition_columns",
    "partition_of",
]

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
REGISTERED, COPIED, CONVERTED = "registered", "copied", "converted"
_UNSTORABLE = "its path has a character that data-file.external-paths cannot hold, such as a comma"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file, how it gets into the table, and why.

    ``how`` is ``CONVERTED``, ``COPIED`` or ``REGISTERED``.
    """

    file: MigratedFile
    how: str
    reason: str


def columns_of(
    directory: PlainDirectory, address: str, partition_types: Mapping[str, str]
) -> pa.Schema:
    """Return the columns of the new table: all columns of the files, then the partition columns.

    ``address`` is the URI of the directory, for errors. ``partition_types`` maps partition columns
    to SQL types; default: STRING. Columns whose types do not fit together raise
    ``InvalidRequestError``.
    """
    if unknown := [key for key in partition_types if key not in directory.keys]:
        raise InvalidRequestError(
            f"partition_types (--partition) names {unknown[0]!r}, which is not a partition column: "
            f"the directories name {', '.join(directory.keys) or 'none'}"
        )
    try:
        schemas = [file.schema for file in directory.files]
        merged = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowException, TypeError) as reason:
        raise InvalidRequestError(
            f"the columns of the files in {address} do not fit together: "
            f"{sentence(reason)} Migrate only files whose columns fit"
        ) from None
    columns = []
    for field in merged:
        if field.name in directory.keys:
            continue  # the directory has the value of this column for all rows
        type_of_column(field.name, field.type)  # raises for a type that no table can have
        columns.append(pa.field(field.name, field.type))
    if not columns:
        raise InvalidRequestError(
            f"the files in {address} have no column besides their partition columns: "
            "check the address of the directory"
        )
    partitions = [
        pa.field(key, _partition_type(key, partition_types.get(key, "STRING")))
        for key in directory.keys
    ]
    return pa.schema([*columns, *partitions])


def _partition_type(key: str, text: str) -> pa.DataType:
    wanted = parse_type(text)
    found = to_arrow_type(wanted)
    if from_arrow_type(found) != wanted:
        raise InvalidRequestError(
            f"partition column {key!r} cannot have the type {text}, because Arrow cannot hold it "
            "unchanged: use STRING for text, or TIMESTAMP(3), TIMESTAMP(6) or TIMESTAMP(9) for "
            "times, and leave out NOT NULL"
        )
    return found


def partition_columns(schema: TableSchema, file: MigratedFile) -> dict[str, pa.Array]:
    """Return the value of each partition column for a file, as an array with one element.

    A directory name that the column's type cannot represent exactly raises ``InvalidRequestError``.
    """
    types = {field.name: field.type for field in schema.fields}
    found = {}
    for key, text in zip(schema.partition_keys, file.values, strict=True):
        null = text in (HIVE_NULL, schema.table_options.partition_default_name)
        value = pa.array([None if null else text], pa.string())
        try:
            found[key] = cast_array(value, STRING, types[key])
            if not null:
                _require_same(text, found[key], types[key])
        except LakeError as reason:
            raise InvalidRequestError(
                f"{file.uri}: {text!r} is not a value of partition column {key!r}, which is "
                f"{type_to_json(types[key])}: {reason}; rename the directory, or choose "
                "another type in partition_types (lake migrate --partition)"
            ) from None
    return found


def _require_same(text: str, found: pa.Array, wanted: DataType) -> None:
    """Raise ``InvalidRequestError`` if the cast from ``text`` to ``found`` changed the value."""
    kind, fraction = found.type, text.partition(".")[2]
    is_number = text.lstrip("-").isdecimal()
    if pa.types.is_date(kind):
        # The cast ignores a time of day, and reads a number as days since 1970.
        is_same = re.fullmatch(r"[0:. ]*", text.strip().partition(" ")[2]) and not is_number
    elif pa.types.is_temporal(kind):
        # The cast ignores more digits than the type has, and reads a number as time since 1970.
        assert isinstance(wanted, AtomicType)
        is_same = not fraction[wanted.precision :].strip("0") and not is_number
    elif pa.types.is_floating(kind):
        is_same = _is_same_number(text, found[0].as_py(), cast_text(found, wanted)[0].as_py())
    else:
        is_same = is_exact(text, found, wanted)
    if not is_same:
        shown = cast_text(found, wanted)[0].as_py()
        how = "read it as time since 1970" if is_number and pa.types.is_temporal(kind) else ""
        raise InvalidRequestError(f"the type would {how or f'change it to {shown!r}'}")


def _is_same_number(text: str, value: float, shown: str) -> bool:
    """Return True if ``value``, or its shortest text ``shown``, is the number in ``text``."""
    try:
        number = Decimal(text.strip().rstrip("fFdD"))
    except InvalidOperation:
        return False
    return number.is_nan() or number in (Decimal(shown), Decimal(repr(value)))


def partition_of(schema: TableSchema, file: MigratedFile) -> bytes:
    """Return the encoded partition of a file. Two directories, such as ``p=1`` and ``p=01``, may
    have the same partition.

    A directory name that the column's type cannot represent exactly raises ``InvalidRequestError``.
    """
    fields, columns = partition_fields(schema), partition_columns(schema, file)
    values = [values_from_arrow(columns[field.name], field.type)[0] for field in fields]
    return frame_row(encode_row(values, [field.type for field in fields]), len(fields))


def choose(
    storage: Storage, root: str, schema: TableSchema, files: Sequence[MigratedFile], *, copy: bool
) -> list[SourceFile]:
    """Return the decision for each of ``files``: register it in place, copy it, or rewrite it.

    A file is registered in place only if every reader can read it, and if it is in the directory of
    its partition: see ``lakeformat/paimon/file_places.py``. With ``copy`` no file is registered.
    The errors of ``partition_of`` are raised.
    """
    fields = [field for field in schema.fields if field.name not in schema.partition_keys]
    names = [(partition_of(schema, file), file.info.name) for file in files]
    counts = Counter(names)
    found = []
    for file, name in zip(files, names, strict=True):
        if (why := _unfit(file, fields) or _misread(file, schema)) is not None:
            found.append(SourceFile(file, CONVERTED, why))
        elif copy:
            found.append(SourceFile(file, COPIED, "the call asks for copies"))
        elif not file.names_format:
            found.append(SourceFile(file, COPIED, f"its name does not end in .{file.format}"))
        elif counts[name] > 1:
            found.append(
                SourceFile(file, COPIED, "another file of its partition has the same name")
            )
        elif not _has_address(storage, root) or not _has_address(storage, file.info.path):
            found.append(SourceFile(file, COPIED, _UNSTORABLE))
        elif len(file.info.path[len(root) :].strip("/").split("/")) != len(file.values) + 1:
            found.append(SourceFile(file, COPIED, "it is not in the directory of its partition"))
        else:
            found.append(SourceFile(file, REGISTERED, "has the columns of the table"))
    return found


def address_of(storage: Storage, path: str) -> str:
    """Return the URI of a path as metadata stores it: without percent-encoding."""
    return f"file:{path}" if storage.scheme == "file" else storage.uri(path)


def _has_address(storage: Storage, path: str) -> bool:
    """Return True if the option ``data-file.external-paths`` can contain the URI of ``path``.
    Commas separate the URIs in the option.
    """
    address = address_of(storage, path)
    try:
        return "," not in address and resolve(address, storage)[1] == path
    except InvalidRequestError:
        return False


def _unfit(file: MigratedFile, fields: Sequence[DataField]) -> str | None:
    """Return the reason why a file must be rewritten; None if it can be used unchanged."""
    wanted = to_arrow_schema(tuple(fields))
    for field in wanted:
        place = file.schema.get_field_index(field.name)
        if place < 0:
            return f"column {field.name!r} is missing"
        there = file.schema.field(place).type
        if pa.types.is_nested(there):
            return f"column {field.name!r} is nested, and programs write nested columns differently"
        if there != field.type:
            return f"column {field.name!r} is {there}, the table has {field.type}"
        if pa.types.is_timestamp(there) and (file.format is FileFormat.ORC or there.unit == "ns"):
            kind = "nanosecond timestamps" if there.unit == "ns" else "ORC timestamps"
            return f"column {field.name!r} has {kind}, which programs write differently"
    return None


def _misread(file: MigratedFile, schema: TableSchema) -> str | None:
    """Return the reason why readers could take values of the table from wrong columns of a file.

    If a file has a partition column, some readers take the values from the file, not from the
    name of the directory. If a Parquet file has field ids, they must be the ids of the table,
    because Iceberg readers find columns by id only.
    """
    ids = {each.name: int((each.metadata or {}).get(PARQUET_ID, -1)) for each in file.schema}
    for key in schema.partition_keys:
        if key in ids:
            return f"it has the partition column {key!r}, whose value its directory names"
    if file.format is not FileFormat.PARQUET or max(ids.values(), default=-1) < 0:
        return None
    for field in schema.fields:
        found = ids.get(field.name, field.id)
        if found < 0:
            return f"column {field.name!r} has no field id, but other columns of the file have one"
        if found != field.id:
            return f"column {field.name!r} has the field id {found}, the table has {field.id}"
    return None
