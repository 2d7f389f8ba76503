# SPDX-License-Identifier: Apache-2.0
"""Converts table metadata to the JSON of a metadata file.

Optional lists and maps are written even if they are empty. Members that this library does not know
are kept.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.metadata.snapshot import (
    metadata_log_entry_to_json,
    reference_to_json,
    snapshot_log_entry_to_json,
    snapshot_to_json,
)
from lakeformat.iceberg.metadata.statistics import (
    partition_statistics_to_json,
    statistics_to_json,
)
from lakeformat.iceberg.metadata.table_metadata import NO_SNAPSHOT, TableMetadata
from lakeformat.iceberg.partition_spec import FIRST_FIELD_ID, spec_to_json
from lakeformat.iceberg.schema import schema_to_json
from lakeformat.iceberg.sort_order import order_to_json

__all__ = ["PLAIN_ENDING", "encode_metadata", "file_ending", "metadata_to_json"]

PLAIN_ENDING = ".metadata.json"
"""The suffix of the name of a metadata file that is not compressed."""

_CODEC = "write.metadata.compression-codec"
_ENDINGS = {"none": PLAIN_ENDING, "gzip": ".gz.metadata.json"}


def metadata_to_json(metadata: TableMetadata) -> dict[str, Any]:
    """Return the metadata as the dict that a metadata file stores."""
    version = metadata.format_version
    members: dict[str, Any] = {"format-version": version}
    if metadata.table_uuid is not None:
        members["table-uuid"] = metadata.table_uuid
    members["location"] = metadata.location
    if version > 1:
        members["last-sequence-number"] = metadata.last_sequence_number
    members["last-updated-ms"] = metadata.last_updated_ms
    members["last-column-id"] = metadata.last_column_id
    members |= _schemas(metadata) | _specs(metadata)
    members["default-sort-order-id"] = metadata.default_sort_order_id
    members["sort-orders"] = [order_to_json(each) for each in metadata.sort_orders]
    members["properties"] = dict(metadata.properties)
    members |= _snapshots(metadata)
    return members | dict(metadata.unknown)


def encode_metadata(metadata: TableMetadata, ending: str | None = None) -> bytes:
    """Return the bytes of a metadata file.

    ``ending`` is the suffix of the file's name; it decides whether the bytes are compressed. By
    default the suffix follows from a property of ``metadata``. Raise ``InvalidRequestError`` if
    this property names an unknown codec.
    """
    codec = _codec(metadata)
    if codec not in _ENDINGS:
        raise InvalidRequestError(
            f"the property {_CODEC!r} of {metadata.location} is {codec!r}, but metadata files have "
            f"only the codecs {', '.join(_ENDINGS)}: set it to one of them"
        )
    content = json.dumps(metadata_to_json(metadata), separators=(",", ":")).encode()
    is_plain = (ending or _ENDINGS[codec]) == PLAIN_ENDING
    return content if is_plain else gzip.compress(content, mtime=0)


def file_ending(metadata: TableMetadata) -> str:
    """Return the suffix of the file name, which depends on the compression.

    If the table property names an unknown codec, return the suffix of a file that is not
    compressed.
    """
    return _ENDINGS.get(_codec(metadata), PLAIN_ENDING)


def _codec(metadata: TableMetadata) -> str:
    return metadata.properties.get(_CODEC, "none").lower()


def _schemas(metadata: TableMetadata) -> dict[str, Any]:
    """Return the members for schemas; readers of version 1 take the current schema from
    ``schema``.
    """
    only = {"schema": schema_to_json(metadata.schema)} if metadata.format_version == 1 else {}
    return {
        **only,
        "current-schema-id": metadata.current_schema_id,
        "schemas": [schema_to_json(each) for each in metadata.schemas],
    }


def _specs(metadata: TableMetadata) -> dict[str, Any]:
    only = {}
    if metadata.format_version == 1:
        only = {
            "partition-spec": spec_to_json(metadata.spec_of(metadata.default_spec_id))["fields"]
        }
    return {
        **only,
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [spec_to_json(each) for each in metadata.partition_specs],
        "last-partition-id": _last_partition_id(metadata),
    }


def _last_partition_id(metadata: TableMetadata) -> int:
    if metadata.last_partition_id is not None:
        return metadata.last_partition_id
    ids = (field.field_id for spec in metadata.partition_specs for field in spec.fields)
    return max(ids, default=FIRST_FIELD_ID - 1)


def _snapshots(metadata: TableMetadata) -> dict[str, Any]:
    version, current = metadata.format_version, metadata.current_snapshot_id
    members: dict[str, Any] = {"current-snapshot-id": current}
    if current is None and version < 3:
        members["current-snapshot-id"] = NO_SNAPSHOT
    if version > 2:
        members["next-row-id"] = metadata.next_row_id
    return members | {
        "refs": {each.name: reference_to_json(each) for each in metadata.references.values()},
        "snapshots": [snapshot_to_json(each) for each in metadata.snapshots],
        "statistics": [statistics_to_json(each) for each in metadata.statistics],
        "partition-statistics": [
            partition_statistics_to_json(each) for each in metadata.partition_statistics
        ],
        "snapshot-log": [snapshot_log_entry_to_json(each) for each in metadata.snapshot_log],
        "metadata-log": [metadata_log_entry_to_json(each) for each in metadata.metadata_log],
    }
