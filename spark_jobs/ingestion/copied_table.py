# SPDX-License-Identifier: Apache-2.0
"""The table into which the changes of another table are written, so that it gets the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from spark_jobs.cdc.evolve import declaration

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["copy_of", "forgets_deletes", "require_no_deletes", "require_same_merge"]

_MERGING = ("merge-engine", "sequence.field", "partial-update.", "aggregation.", "fields.")
"""The beginnings of the options that decide how rows of one key are merged."""
_OTHER_FIELD_OPTIONS = (".stats-mode", ".map.storage-layout")


def copy_of(
    catalog: lake.Catalog,
    table: lake.Table | None,
    source: lake.Table,
    wanted: IngestRequest,
) -> lake.Table:
    """Return ``table``; if it is None, create it with the columns of ``source``.

    Partitions and buckets of a new table are those of the source, unless the request sets them.
    Raise ``UnsupportedError`` if the primary key is too small, see ``_require_key``.
    """
    if table is not None:
        _require_key(table.schema.primary_keys, source, wanted)
        return table
    key = _key_of_copy(source) if wanted.primary_key is None else [*wanted.primary_key]
    _require_key(key, source, wanted)
    return _create(catalog, source, wanted, key)


def require_same_merge(table: lake.Table, source: lake.Table, wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` if the table merges the written rows of a source otherwise than
    the source.

    Any table can have the changes of a source whose compactions write the changelog, because these
    are merged rows, and of a source in which the last row of each key replaces the earlier ones.
    """
    merging, other = _merging(source.schema.options), _merging(table.schema.options)
    if not table.schema.primary_keys or source.schema.table_options.makes_changelog:
        return
    if merging and other != merging:
        keys = sorted(key for key in {*merging, *other} if merging.get(key) != other.get(key))
        raise lake.UnsupportedError(
            f"{wanted.table} would get other rows than {wanted.source_table}, whose changes are "
            "rows as written, not yet merged: the two tables differ in "
            f"{', '.join(keys)}. Nothing was written. If only options of new columns differ, set "
            "them with `lake set-option`; otherwise copy into a new table, which gets these "
            "options, with another consumer"
        )


def forgets_deletes(source: lake.Table) -> bool:
    """Return True if a compaction of ``source`` can forget the sequence of a deleted row, so that
    the row returns with a smaller one, although the changes are rows as written.
    """
    options = source.schema.table_options
    orders = options.sequence_field or options.remove_record_on_sequence_group
    return bool(orders) and not options.makes_changelog and not options.ignore_delete


def require_no_deletes(
    table: lake.Table, changes: Iterable[pa.RecordBatch], kinds: str
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a source that ``forgets_deletes``. Raise ``UnsupportedError`` at the
    first row of the kind ``-U`` or ``-D`` in the column ``kinds``.
    """
    removing = pa.array(["-U", "-D"])
    for batch in changes:
        if pc.any(pc.is_in(batch.column(kinds), value_set=removing)).as_py():
            raise lake.UnsupportedError(
                f"{table.location} could lose rows: the changes to copy have rows of the kind -U "
                "or -D, and a sequence column orders the rows of each key. A compaction of the "
                "source forgets the sequence of a deleted row, but the copy may keep it and then "
                "refuse a later row with a smaller one. Nothing was written; set the option "
                "'changelog-producer' of the source to 'lookup', or to 'full-compaction' if the "
                "source refuses that; then copy into a new table, with another consumer"
            )
        yield batch


def _create(
    catalog: lake.Catalog,
    source: lake.Table,
    wanted: IngestRequest,
    key: Sequence[str],
) -> lake.Table:
    schema = source.schema
    columns = [(each.name, declaration(each.type)) for each in schema.fields]
    catalog.create_database(wanted.table.rpartition(".")[0], exist_ok=True)
    plain = [(name, type) for name, type in columns if isinstance(type, str)]
    return catalog.create_table(
        wanted.table,
        plain if len(plain) == len(columns) else schema.arrow_schema(),
        primary_key=key,
        partition_by=schema.partition_keys if wanted.partition_by is None else wanted.partition_by,
        options=_options_of_copy(source) | dict(wanted.table_options or {}),
        exist_ok=True,
    )


def _key_of_copy(source: lake.Table) -> list[str]:
    """Return the primary key for a copy of ``source``.

    If keys of the source can move between partitions, the partition columns are added.
    """
    schema = source.schema
    key = [*schema.primary_keys]
    if key and schema.table_options.merge_engine != "first-row":
        key += [name for name in schema.partition_keys if name not in key]
    return key


def _options_of_copy(source: lake.Table) -> dict[str, str]:
    options = source.schema.options
    bucket = {key: options[key] for key in ("bucket", "bucket-key") if key in options}
    return bucket if source.schema.table_options.makes_changelog else bucket | _merging(options)


def _require_key(key: Sequence[str], source: lake.Table, wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` if a table with the primary key ``key`` may lose rows of a source
    whose keys move between partitions.

    A key that moves is deleted in one partition and inserted in another. The changes of the two
    partitions have no order, so the deletion may arrive last.
    """
    needed = _key_of_copy(source)
    lacks = ", ".join(each for each in needed[len(source.schema.primary_keys) :] if each not in key)
    if key and lacks:
        raise lake.UnsupportedError(
            f"{wanted.table} would lose rows: the primary key of {wanted.source_table} lacks "
            f"{lacks}, so a row can move to another partition, and then its deletion in the old "
            "partition can arrive after the new row. Nothing was written; copy into a new table "
            f"with the primary key {', '.join(needed)}, and with another consumer"
        )


def _merging(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that decide how rows of one key are merged; none if the last row wins."""
    found = {
        key: value
        for key, value in options.items()
        if key.startswith(_MERGING) and not key.endswith(_OTHER_FIELD_OPTIONS)
    }
    return {} if found == {"merge-engine": "deduplicate"} else found
