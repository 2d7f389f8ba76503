# SPDX-License-Identifier: Apache-2.0
"""Publishes changes of rows in one commit of the change store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.partition_terms import partition_terms
from lakeformat.iceberg.properties import bool_property
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import Base, FileChange, PublishedChange, publish_change
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.mixed.stores.detaching import require_not_detaching
from lakeformat.mixed.stores.key_types import require_one_key_type
from lakeformat.mixed.stores.log_store import require_no_log_store
from lakeformat.mixed.stores.optimized_sequences import (
    optimized_sequences,
    require_possible_sequences,
)
from lakeformat.mixed.stores.properties import UPSERT
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.stores.version_field import rows_replace
from lakeformat.mixed.write.change_writer import OWN_SEQUENCE, ChangeWriter
from lakeformat.rows.batches import to_batches
from lakeformat.rows.row_kinds import GivenKinds
from lakeformat.tables.commit_id import CommitId, delete_first, require_commit_id
from lakeformat.tables.kept_files import kept_if_published

__all__ = [
    "WRITTEN_ROWS",
    "BatchPlace",
    "Fill",
    "added_changes",
    "change_handle",
    "change_report",
    "earlier_write",
    "fill_given",
    "publish_changes",
    "refuse_replacing",
    "require_changeable",
    "write_changes",
]

WRITTEN_ROWS = "lake.written-rows"
"""The member of a snapshot summary with the number of rows that ``write`` was given."""
_WITH_SEQUENCES = 2
"""The first format version whose files have sequence numbers."""


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """The transaction of a batch, and the conditions of its commit."""

    transaction: int
    marks: Mapping[str, str]
    """The members of the summary of the change snapshot that ends the batch."""
    require: Callable[[Base, pa.Table], None]
    """A function that raises a ``LakeError`` if the batch must not add files to the change store.

    It gets the base of the commit and the manifest entries of the files.
    """


Fill = Callable[[ChangeWriter], None]
"""A function that gives the changes of one commit to a writer."""


def write_changes(
    pair: StorePair,
    data: Any,
    kinds: Any = None,
    *,
    replaces: bool | None = None,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteReport:
    """Store rows by their key in one commit; a row of kind ``-U`` or ``-D`` deletes its key.

    With ``replaces=None`` the table property ``write.upsert.enabled`` decides if a new row replaces
    the row of its key. If an earlier call has published ``commit``, this call publishes nothing.
    After ``CommitOutcomeUnknownError`` the rows may be published, and files may be left. After any
    other error nothing is published and no file is left.
    """
    return publish_changes(
        pair,
        lambda writer: fill_given(writer, data, kinds),
        replaces=replaces,
        commit=commit,
        properties=properties,
    )


def publish_changes(
    pair: StorePair,
    fill: Fill,
    *,
    replaces: bool | None = None,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
    batch: BatchPlace | None = None,
) -> WriteReport:
    """Publish the changes that ``fill`` gives to the writer, in one commit of the change store.

    ``replaces``, repeated calls and errors are as in ``write_changes``. With ``batch`` the changes
    have its transaction, and the commit ends the batch.
    """
    given = checked_properties(properties)
    refuse_replacing(pair, commit)
    pair.base.pointer.require_writable()
    handle = change_handle(pair)
    loaded = pair.load_to_change()
    if (earlier := earlier_write(pair, loaded, commit)) is not None:
        return change_report(pair.base.uri, earlier[1])
    require_changeable(loaded)
    if replaces is None:
        replaces = bool_property(loaded.base.metadata.properties, UPSERT, default=True)
    transaction = OWN_SEQUENCE if batch is None else batch.transaction
    writer = ChangeWriter(loaded, handle.environment, replaces=replaces, transaction=transaction)
    entries = _written(writer, fill)
    paths = entries.column("file_path").to_pylist()
    with kept_if_published(lambda: delete_files(loaded.change.places, paths)):
        published = publish_change(
            handle,
            lambda base: added_changes(base, entries, batch),
            commit=commit,
            properties={**given, WRITTEN_ROWS: str(writer.changed_rows)},
            planned=loaded.change,
        )
    if published.is_replayed:  # another process with the same identity published it meanwhile
        delete_files(loaded.change.places, paths)
    return change_report(pair.base.uri, published)


def earlier_write(
    pair: StorePair, loaded: LoadedPair, commit: CommitId | None
) -> tuple[LoadedMetadata, PublishedChange] | None:
    """Return the store with an earlier write of this identity, and that write; else None.

    The base store is searched, too. It has the overwrites, and the writes from before the table
    became a Mixed table.
    """
    for handle, store in ((change_handle(pair), loaded.change), (pair.base, loaded.base)):
        if (found := earlier_commit(handle, store, commit)) is not None:
            return store, found
    return None


def fill_given(writer: ChangeWriter, data: Any, kinds: Any) -> None:
    """Give the rows of a caller to the writer, with their kinds if ``kinds`` is given."""
    reader = None if kinds is None else GivenKinds(writer.schema.column_names, kinds)
    for batch in to_batches(data):
        found, stored = None, batch
        if reader is not None:
            stored, own = reader.split(batch)
            found = reader.read(own, writer.changed_rows)
        writer.change(stored, found)
    if reader is not None:
        reader.finish()


def require_changeable(pair: LoadedPair) -> None:
    """Check that new changes can be committed and merged.

    Raise ``UnsupportedError`` if the change store has version 1 of the Iceberg format, if a key
    column had several types, if the stores have different partitions, or if the table has a
    LogStore. Raise ``CorruptTableError`` if the base store records a sequence number as merged that
    the change store has not used yet. Raise ``CommitConflictError`` if the table is being detached.
    """
    require_not_detaching(pair.change)
    require_no_log_store(pair)
    _require_sequences(pair)
    require_one_key_type((pair.base.metadata, pair.change.metadata), pair.key, "a write")
    _require_possible_record(pair)
    _require_same_partitions(pair)


def added_changes(
    base: Base, entries: pa.Table, batch: BatchPlace | None = None
) -> FileChange | None:
    """Return the change that adds files to the change store; with ``batch`` it also ends the batch.

    None if there are no files and no ``batch``. Raise ``CommitConflictError`` if the table is being
    detached, and the errors of ``batch.require``.
    """
    require_not_detaching(base.loaded)
    if batch is None:
        return ChangedFiles([entries])(base)
    batch.require(base, entries)
    change = ChangedFiles([entries], is_recorded=True)(base)
    assert change is not None
    return replace(change, operation="append", more=batch.marks)


def refuse_replacing(pair: StorePair, commit: CommitId | None) -> None:
    """Raise ``UnsupportedError`` if ``commit`` replaces an earlier commit.

    Raise ``InvalidRequestError`` if it is not a ``CommitId``; None is accepted.
    """
    if commit is None:
        return
    require_commit_id(commit)
    if commit.replaces is not None:
        _refuse_adding_again(pair, commit)
        raise UnsupportedError(
            f"a commit to {pair.base.uri}, a Mixed table, cannot replace an earlier one: write the "
            "corrected rows. They replace the rows with the same keys"
        )


def _refuse_adding_again(pair: StorePair, commit: CommitId) -> None:
    base = pair.load().base
    if not rows_replace(base.metadata.properties):
        raise UnsupportedError(
            f"{commit} cannot take the place of an earlier commit to {pair.base.uri}, a Mixed "
            f"table with {UPSERT!r} = 'false': the same rows would be added a second time. Nothing "
            f"was published. {delete_first(base.places.argument)}"
        )


def change_handle(pair: StorePair) -> TableHandle:
    """Return the handle of the change store, to which writes are published."""
    return replace(pair.base, pointer=pair.change)


def _require_sequences(pair: LoadedPair) -> None:
    version = pair.change.metadata.format_version
    if version < _WITH_SEQUENCES:
        raise UnsupportedError(
            f"the change store of {pair.base.places.uri} has version {version} of the Iceberg "
            "format, whose files have no sequence numbers, so changes would have no order: upgrade "
            "both stores with Spark, by ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')"
        )


def _require_possible_record(pair: LoadedPair) -> None:
    """Raise ``CorruptTableError`` if the base store counts new changes as merged: no reader would
    read them.
    """
    with suppress(UnsupportedError):  # a record in its earlier form: readers name the way out
        merged = optimized_sequences(pair.base, pair.base.metadata.current_snapshot)
        require_possible_sequences(pair.base, pair.change, merged)


def _require_same_partitions(pair: LoadedPair) -> None:
    base, change = (partition_terms(each.metadata) for each in (pair.base, pair.change))
    if base != change:
        raise UnsupportedError(
            f"the stores of {pair.base.places.uri}, a Mixed table, are partitioned differently: by "
            f"{', '.join(base) or 'nothing'} in the base store, by {', '.join(change) or 'nothing'}"
            f" in {pair.change.places.uri}. Nothing was written, because merged rows and changes "
            "would have no partition in common. Give both stores the same default partition spec, "
            "with the program that changed the spec of one store"
        )


def _written(writer: ChangeWriter, fill: Fill) -> pa.Table:
    """Write the changes to new files, and return their manifest entries.

    After an error no file is left.
    """
    try:
        fill(writer)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def change_report(table: str, published: PublishedChange) -> WriteReport:
    """Return the report of a write; ``rows`` counts the rows that the write was given."""
    report, snapshot = write_report(table, published), published.snapshot
    if snapshot is None or WRITTEN_ROWS not in snapshot.summary:
        return report
    return replace(report, rows=snapshot.count(WRITTEN_ROWS))
