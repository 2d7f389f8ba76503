# SPDX-License-Identifier: Apache-2.0
"""Makes the first metadata of a table, and publishes it in a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from lakeformat.environment import SYSTEM, Environment
from lakeformat.errors import AlreadyExistsError, InvalidRequestError
from lakeformat.iceberg.commit.directory_pointer import write_hint
from lakeformat.iceberg.create.arrow_schema import new_schema
from lakeformat.iceberg.create.transform_terms import new_sort_order, new_spec
from lakeformat.iceberg.metadata.metadata_file import METADATA, is_metadata_file
from lakeformat.iceberg.metadata.metadata_json import PLAIN_ENDING, encode_metadata
from lakeformat.iceberg.metadata.table_metadata import NEWEST_VERSION, TableMetadata
from lakeformat.iceberg.partition_spec import FIRST_FIELD_ID
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.sort_order import SortOrder
from lakeformat.iceberg.types import Type, inner_fields
from lakeformat.storage import Storage
from lakeformat.tables.create_once import create_once

__all__ = ["create_at_path", "location_at", "new_table_metadata"]

_VERSION = "format-version"
_VERSIONS = [str(number) for number in range(1, NEWEST_VERSION + 1)]
_LITERAL = ("file", "memory")


def new_table_metadata(
    location: str,
    columns: pa.Schema,
    *,
    partitioned_by: Sequence[str] = (),
    sorted_by: Sequence[str] = (),
    identifier_fields: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    format_version: int | None = None,
    environment: Environment = SYSTEM,
) -> TableMetadata:
    """Return the metadata of a new table without snapshots.

    ``partitioned_by`` lists columns and transforms such as ``day(ts)`` and ``bucket(16, id)``. In
    ``sorted_by``, ``desc`` and ``nulls last`` may follow each column or transform.
    ``identifier_fields`` lists the columns whose values identify a row. If neither
    ``format_version`` nor the property ``format-version`` is given, the version is 2. Raise
    ``InvalidRequestError`` for arguments that do not fit the columns, and ``UnsupportedError`` for
    a column whose type the version does not have.
    """
    kept = dict(properties or {})
    version = _version(kept.pop(_VERSION, None), format_version)
    schema = new_schema(columns, identifier_fields, version)
    spec, order = new_spec(schema, partitioned_by), new_sort_order(schema, sorted_by)
    return TableMetadata(
        format_version=version,
        table_uuid=environment.new_id(),
        location=location.rstrip("/"),
        last_updated_ms=environment.now_millis(),
        last_column_id=_last_id(schema),
        schemas=(schema,),
        current_schema_id=0,
        partition_specs=(spec,),
        default_spec_id=0,
        last_partition_id=FIRST_FIELD_ID - 1 + len(spec.fields),
        sort_orders=(SortOrder(0), order) if order.fields else (order,),
        default_sort_order_id=order.order_id,
        properties=kept,
        next_row_id=0 if version > 2 else None,
    )


def location_at(storage: Storage, root: str) -> str:
    """Return the URI of the directory ``root`` in the form in which metadata stores it.

    The URI of a local path has no percent escapes.
    """
    uri = storage.uri(root)
    return unquote(uri) if storage.scheme in _LITERAL else uri


def create_at_path(storage: Storage, root: str, metadata: TableMetadata) -> None:
    """Publish the first metadata file of a table without a catalog.

    The file is never compressed, so its name is always ``v1.metadata.json``. Only one of several
    writers can create this name. Raise ``AlreadyExistsError`` if the directory already has a table;
    another writer may have created it just now.
    """
    directory = f"{root}/{METADATA}"
    content = encode_metadata(metadata, PLAIN_ENDING)
    if any(is_metadata_file(info.name) for info in storage.list(directory)):
        raise _taken(storage, root)
    storage.make_directory(directory)
    if not create_once(storage, f"{directory}/v1{PLAIN_ENDING}", content):
        raise _taken(storage, root)
    write_hint(storage, root, 1)


def _taken(storage: Storage, root: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{storage.uri(root)} has an Iceberg table already: open it, or choose another directory"
    )


def _version(of_property: str | None, given: int | None) -> int:
    version = str(of_property or 2) if given is None else str(given)
    if version not in _VERSIONS:
        raise InvalidRequestError(
            f"the format version must be one of {', '.join(_VERSIONS)}, got {version!r}"
        )
    return int(version)


def _last_id(schema: Schema) -> int:
    return max(_ids(schema.struct), default=0)


def _ids(kind: Type) -> list[int]:
    return [number for field in inner_fields(kind) for number in (field.id, *_ids(field.type))]
