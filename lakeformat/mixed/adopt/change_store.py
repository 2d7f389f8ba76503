# SPDX-License-Identifier: Apache-2.0
"""Makes the metadata of a change store for an existing Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.partition_spec import FIRST_FIELD_ID
from lakeformat.iceberg.read.plan import FilePlan
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.types import Field
from lakeformat.mixed.batch.open_batches import overwritten_by
from lakeformat.mixed.file_names import name_columns
from lakeformat.mixed.stores.pair_properties import OF_PAIRS
from lakeformat.mixed.stores.properties import CHANGE, FORMAT_MARK, PRIMARY_KEY, TABLE_STORE, UPSERT

__all__ = ["change_metadata", "first_free_number", "with_required"]

_OWN_PLACES = (
    *OF_PAIRS,
    "comment",
    "gc.enabled",
    "schema.name-mapping.default",
    "write.data.path",
    "write.folder-storage.path",
    "write.metadata.path",
    "write.object-storage.path",
)
"""The properties of an Iceberg table that are not copied to its change store."""


def change_metadata(
    base: TableMetadata,
    key: Sequence[str],
    location: str,
    *,
    number: int,
    more: Mapping[str, str],
    environment: Environment,
) -> TableMetadata:
    """Return the metadata of an empty change store at a location.

    The change store gets the columns of the table with their ids, its partition spec, its
    properties except ``_OWN_PLACES``, and the properties ``more``. Its sequence numbers begin after
    ``number``.
    """
    spec = replace(base.spec_of(base.default_spec_id), spec_id=0)
    copied = {each: value for each, value in base.properties.items() if each not in _OWN_PLACES}
    return TableMetadata(
        format_version=base.format_version,
        table_uuid=environment.new_id(),
        location=location.rstrip("/"),
        last_updated_ms=environment.now_millis(),
        last_column_id=base.last_column_id,
        schemas=(Schema(0, with_required(base.schema.fields, key)),),
        current_schema_id=0,
        partition_specs=(spec,),
        default_spec_id=0,
        last_partition_id=max((e.field_id for e in spec.fields), default=FIRST_FIELD_ID - 1),
        last_sequence_number=number,
        properties={
            UPSERT: "true",
            **copied,
            **more,
            **FORMAT_MARK,
            PRIMARY_KEY: ",".join(key),
            TABLE_STORE: CHANGE,
        },
    )


def with_required(fields: Sequence[Field], key: Sequence[str]) -> tuple[Field, ...]:
    """Return the columns, with the columns of the key as required ones."""
    return tuple(replace(each, required=True) if each.name in key else each for each in fields)


def first_free_number(base: LoadedMetadata, plan: FilePlan) -> int:
    """Return the number above which sequence numbers of a new change store are free.

    It is the largest transaction that an earlier change store has left in the names of live files
    and in snapshots; 0 if there is none.
    """
    paths = [path for table in plan.entries for path in table.column("file_path").to_pylist()]
    names = name_columns(pa.array(paths, pa.string())).field("transaction")
    named = [each for each in names.to_pylist() if each is not None]
    overwritten = (number for e in base.metadata.snapshots for number in overwritten_by(e))
    largest: int = max([0, *named, *overwritten])
    return largest
