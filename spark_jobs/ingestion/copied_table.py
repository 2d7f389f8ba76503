# SPDX-License-Identifier: Apache-2.0
"""The table into which the changes of another table are written, so that it gets the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import lakeformat as lake
from spark_jobs.cdc.evolve import declaration

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = [
    "copy_of",
    "forgets_deletes",
    "require_no_deletes",
    "require_no_kept_deletes",
    "require_same_merge",
]


def copy_of(
    catalog: lake.Catalog,
    table: lake.Table | None,
    source: lake.Table,
    wanted: IngestRequest,
) -> lake.Table:
    """Return ``table``; if it is None, create it with the columns of ``source``.

    Partitions and buckets of a new table are those of the source, unless the request sets them.
    Raise ``UnsupportedError`` if the table would get other rows than the source; then no table is
    created.
    """
    if table is not None:
        _require_key(table.schema.primary_keys, source, wanted)
        return table
    key = _key_of_copy(source) if wanted.primary_key is None else [*wanted.primary_key]
    _require_key(key, source, wanted)
    options = _options_of_copy(source, key) | dict(wanted.table_options or {})
    if key:
        merging = replace(source.schema, options=options).table_options.merging
        _require_merging(merging, source, wanted)
    return _create(catalog, source, wanted, key, options)


def require_same_merge(table: lake.Table, source: lake.Table, wanted: IngestRequest) -> None:
    """Raise ``UnsupportedError`` if the changes of ``source`` are not merged yet, and ``table``
    would merge them by other options than ``source``.

    Other options are allowed if the changes are already merged, or if the last row of a key in the
    source replaces the earlier rows.
    """
    if table.schema.primary_keys:
        _require_merging(table.schema.table_options.merging, source, wanted)


def _require_merging(merging: Mapping[str, Any], source: lake.Table, wanted: IngestRequest) -> None:
    options = source.schema.table_options
    needed = options.merging
    if options.makes_changelog or not needed or merging == needed:
        return
    keys = sorted(key for key in {*merging, *needed} if merging.get(key) != needed.get(key))
    raise lake.UnsupportedError(
        f"{wanted.table} would get other rows than {wanted.source_table}. The changes of the "
        "source are not merged yet, because its 'changelog-producer' is "
        f"{options.changelog_producer!r}. So both tables must merge rows by the same options, but "
        f"they differ in {', '.join(keys)}. No row was written. If these options were set in the "
        f"source for new columns, set them in {wanted.table}, too (`lake set-option`). Otherwise "
        "copy into a new table, without these options in 'table_options', and with another "
        "consumer"
    )


def forgets_deletes(source: lake.Table) -> bool:
    """Return True if ``source`` and its copy may merge the later rows of a deleted key differently.

    With some options, a later row of a deleted key is compared or merged with the deleted row,
    until a compaction removes the deleted row. The results can differ if only the source has been
    compacted. A source whose changes are already merged is not affected.
    """
    options = source.schema.table_options
    keeps = options.sequence_field or options.merge_engine in ("partial-update", "aggregation")
    return bool(keeps) and not options.makes_changelog and not options.ignore_delete


def require_no_deletes(
    table: lake.Table, changes: Iterable[pa.RecordBatch], kinds: str
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a source for which ``forgets_deletes`` is True. Raise
    ``UnsupportedError`` at the first deleted row: a row of the kind ``-D``, or a row of the kind
    ``-U`` that is not followed by the row of the kind ``+U`` of the same key.

    The column ``kinds`` has the kind of each row.
    """
    held: list[pa.RecordBatch] = []  # the last row, if it is a -U, whose +U may follow
    for batch in changes:
        rows = pa.Table.from_batches([*held, batch]).combine_chunks()
        count = rows.num_rows
        waits = count > 0 and rows[kinds][count - 1].as_py() == "-U"
        held = rows.slice(count - 1).to_batches() if waits else []
        ready = rows.slice(0, count - len(held))
        _require_rows_remain(table, ready, kinds)
        yield from ready.to_batches()
    if held:
        _require_rows_remain(table, pa.Table.from_batches(held), kinds)


def _require_rows_remain(table: lake.Table, rows: pa.Table, kinds: str) -> None:
    kind, last = rows[kinds], max(rows.num_rows - 1, 0)
    follows = pc.equal(kind.slice(1), "+U")
    for name in table.schema.primary_keys:
        follows = pc.and_(follows, pc.equal(rows[name].slice(0, last), rows[name].slice(1)))
    none_after = pa.array([False] * (rows.num_rows - last), pa.bool_())
    is_updated = pa.chunked_array([*follows.chunks, none_after], pa.bool_())
    lone = pc.and_not(pc.equal(kind, "-U"), is_updated)
    deleted = rows.filter(pc.or_(pc.equal(kind, "-D"), lone))
    if deleted.num_rows:
        key = deleted.select(table.schema.primary_keys).slice(0, 1).to_pylist()[0]
        raise lake.UnsupportedError(
            f"{table.location} could get other rows than its source, because the source has "
            f"deleted the row of the key {key}. A compaction of the source forgets the sequence "
            "and the values of a deleted row, but the copy may still compare or merge a later row "
            "with them. Nothing was written. Set the option 'changelog-producer' of the source to "
            "'lookup', or to 'full-compaction' if the source refuses 'lookup'. Then copy into a "
            "new table, with another consumer"
        )


def require_no_kept_deletes(table: lake.Table, scan: lake.Scan) -> None:
    """Raise ``UnsupportedError`` if files of ``scan`` have, or may have, deletes.

    The scan reads all rows of a source for which ``forgets_deletes`` is True. The scan does not
    return the deletes, so the copy would not get them.
    """
    if any(entry.file.delete_row_count != 0 for split in scan.splits() for entry in split.files):
        raise lake.UnsupportedError(
            f"{table.location} could get other rows than its source: files of the source may "
            "contain deleted rows. The source may still compare or merge later rows with these "
            "deleted rows, but the copy does not get them. Nothing was written. If rows will be "
            "deleted in the source later, too, first set its option 'changelog-producer' to "
            "'lookup', or to 'full-compaction' if it refuses 'lookup'. Then compact the source "
            "completely (`lake compact`), and run the job again"
        )


def _create(
    catalog: lake.Catalog,
    source: lake.Table,
    wanted: IngestRequest,
    key: Sequence[str],
    options: Mapping[str, str],
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
        options=options,
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


def _options_of_copy(source: lake.Table, key: Sequence[str]) -> dict[str, str]:
    options, typed = source.schema.options, source.schema.table_options
    copied = {"bucket", "bucket-key"}
    if key and not typed.makes_changelog:
        copied |= {*typed.merging}
    return {name: text for name, text in options.items() if name in copied}


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
