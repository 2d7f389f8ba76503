"""What is different between two states of a primary-key table, key by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakeformat.datafile.system_fields import VALUE_KIND
from lakeformat.errors import UnsupportedError
from lakeformat.handle import TableHandle
from lakeformat.merge.order import MergeOrder
from lakeformat.merge.row_kinds import DELETE
from lakeformat.metadata.manifest import ManifestEntry
from lakeformat.metadata.snapshot import Snapshot
from lakeformat.read.changed_rows import ChangedRows
from lakeformat.read.data_files import DataFiles
from lakeformat.read.deletions import DeletedRows, find_deleted_rows
from lakeformat.read.equal_rows import equal_rows
from lakeformat.read.merged_kinds import MergedKinds
from lakeformat.read.plan import plan_files
from lakeformat.read.prune import on_columns
from lakeformat.schema import TableSchema

__all__ = ["diff_states"]

_Place: TypeAlias = tuple[bytes, int]
_DEDUPLICATE = "deduplicate"


def diff_states(
    handle: TableHandle,
    before: Snapshot | None,
    after: Snapshot | None,
    asked: ChangedRows,
    *,
    keep_deletes: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``after`` that ``before`` has not or has otherwise.

    With ``keep_deletes`` also, as ``-D``, those of ``before`` whose key is gone.
    """
    old, new = _State(handle, before, asked), _State(handle, after, asked)
    skips_common = not keep_deletes and _newest_file_decides(handle.schema)
    for place in dict.fromkeys([*new.buckets, *old.buckets]):
        _require_same_buckets(handle, old.buckets.get(place), new.buckets.get(place))
        mine, theirs = old.files(place), new.files(place)
        if mine.keys() == theirs.keys():
            continue
        if skips_common:
            common = mine.keys() & theirs.keys()
            mine, theirs = ({k: v for k, v in d.items() if k not in common} for d in (mine, theirs))
        changed = _changed(
            handle.schema, old.rows(mine.values()), new.rows(theirs.values()), keep_deletes
        )
        for batch in changed:
            shaped = asked.of_stored(batch)
            if shaped.num_rows:
                yield shaped


class _State:
    """The files of one state, and their merged rows."""

    def __init__(self, handle: TableHandle, snapshot: Snapshot | None, asked: ChangedRows) -> None:
        self.buckets: dict[_Place, list[ManifestEntry]] = {}
        self._deleted = DeletedRows(handle, ())
        self._schema = handle.schema
        if snapshot is None:
            return
        self._deleted = find_deleted_rows(handle, snapshot)
        self._reader = MergedKinds(
            handle.schema, DataFiles(handle, snapshot, self._deleted), handle.schema.fields
        )
        conditions = () if asked.where is None else asked.where.conditions()
        keys = handle.schema.primary_keys  # other columns are known after the merge only
        conditions = on_columns(conditions, keys)
        for entry in plan_files(handle, snapshot, conditions=conditions):
            if entry.bucket >= 0:
                self.buckets.setdefault((entry.partition, entry.bucket), []).append(entry)

    def files(self, place: _Place) -> dict[tuple[object, ...], ManifestEntry]:
        """By what makes their rows the same: the file, and how many of its rows are deleted."""
        found = self.buckets.get(place, ())
        return {(*entry.identity, self._deleted.count(entry)): entry for entry in found}

    def rows(self, files: Iterable[ManifestEntry]) -> pa.Table:
        """The merged rows without retracts."""
        schema = MergedKinds.schema_of(self._schema.fields)
        chosen = list(files)
        if not chosen:
            return schema.empty_table()
        return pa.Table.from_batches(self._reader.read(chosen, keep_retracts=False), schema)


def _changed(
    schema: TableSchema, before: pa.Table, after: pa.Table, keep_deletes: bool
) -> Iterator[pa.RecordBatch]:
    """The full outer join of two sides that have each key once."""
    rows = pa.concat_tables([before, after])
    keys = MergeOrder(tuple(field.name for field in schema.key_fields))
    groups = keys.group(rows, numbered=False)
    firsts, is_pair = groups.oldest, groups.sizes == 2
    is_changed = groups.newest >= before.num_rows
    both = np.flatnonzero(is_pair)
    columns = schema.column_names
    is_changed[both] = ~equal_rows(
        rows.select(columns).take(pa.array(firsts[both])),
        rows.select(columns).take(pa.array(groups.newest[both])),
    )
    is_gone = ~is_pair & (firsts < before.num_rows)
    chosen = is_changed | is_gone if keep_deletes else is_changed
    found = rows.take(pa.array(groups.newest[chosen]))
    kinds = np.where(is_gone[chosen], DELETE, found[VALUE_KIND.name].to_numpy()).astype(np.int8)
    at = found.schema.get_field_index(VALUE_KIND.name)
    yield from found.set_column(at, found.schema.field(at), pa.array(kinds)).to_batches()


def _newest_file_decides(schema: TableSchema) -> bool:
    """Whether a row of a new file says alone what became of its key.

    Then files of both states need not be read. A row that was written again unchanged counts as
    changed, as it does in Java.
    """
    options = schema.table_options
    return options.merge_engine == _DEDUPLICATE and not options.sequence_field


def _require_same_buckets(
    handle: TableHandle,
    before: Sequence[ManifestEntry] | None,
    after: Sequence[ManifestEntry] | None,
) -> None:
    counts = {entry.total_buckets for files in (before, after) for entry in files or ()}
    if len(counts) > 1:
        shown = " and ".join(str(count) for count in sorted(counts))
        raise UnsupportedError(
            f"a partition of {handle.uri} has {shown} buckets in the two states: rows of one key "
            "are in different buckets, which cannot be compared; compare states on one side of "
            "the change of buckets"
        )
