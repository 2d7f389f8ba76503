# SPDX-License-Identifier: Apache-2.0
"""Publishes changes of rows in one commit of the change store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakeformat.environment import Environment
from lakeformat.errors import UnsupportedError
from lakeformat.iceberg.write.append import checked_properties, earlier_commit
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.new_entries import delete_files
from lakeformat.iceberg.write.publish import publish_change
from lakeformat.iceberg.write.report import WriteReport, write_report
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.write.change_writer import ChangeWriter
from lakeformat.rows.batches import to_batches
from lakeformat.rows.row_kinds import GivenKinds
from lakeformat.tables.commit_id import CommitId
from lakeformat.tables.kept_files import kept_if_published

__all__ = ["write_changes"]


def write_changes(
    pair: StorePair,
    data: Any,
    kinds: Any = None,
    *,
    commit: CommitId | None = None,
    properties: Mapping[str, str] | None = None,
) -> WriteReport:
    """Store rows by their key, and delete those whose kind is ``-U`` or ``-D``, in one commit.

    A repeated call with the same ``commit`` publishes nothing again. After an error nothing is
    published and no file is left, except after ``CommitOutcomeUnknownError``.
    """
    given = checked_properties(properties)
    if commit is not None and commit.replaces is not None:
        raise UnsupportedError(
            f"a commit to {pair.base.uri}, a Mixed table, cannot replace an earlier one: write the "
            "corrected rows, which replace those of the same keys"
        )
    pair.base.pointer.require_writable()
    handle = replace(pair.base, pointer=pair.change)
    loaded = pair.load()
    if (earlier := earlier_commit(handle, loaded.change, commit)) is not None:
        return write_report(pair.base.uri, earlier)
    entries, rows = _written(loaded, handle.environment, data, kinds)
    paths = entries.column("file_path").to_pylist()
    with kept_if_published(lambda: delete_files(loaded.change.places, paths)):
        published = publish_change(
            handle,
            ChangedFiles([entries]),
            commit=commit,
            properties=given,
            planned=loaded.change,
        )
    report = write_report(pair.base.uri, published)
    if published.is_replayed:  # another process with the same identity published it meanwhile
        delete_files(loaded.change.places, paths)
        return report
    return replace(report, rows=rows)


def _written(
    pair: LoadedPair, environment: Environment, data: Any, kinds: Any
) -> tuple[pa.Table, int]:
    """Write the changes to new files; return their manifest entries and the number of rows.

    After an error no file is left.
    """
    columns = [each.name for each in pair.base.metadata.schema.fields]
    reader = None if kinds is None else GivenKinds(columns, kinds)
    writer, rows = ChangeWriter(pair, environment), 0
    try:
        for batch in to_batches(data):
            found = None
            stored = batch
            if reader is not None:
                stored, own = reader.split(batch)
                found = reader.read(own, rows)
            writer.change(stored, found)
            rows += batch.num_rows
        if reader is not None:
            reader.finish()
        return writer.finish(), rows
    except BaseException:
        writer.discard()
        raise
