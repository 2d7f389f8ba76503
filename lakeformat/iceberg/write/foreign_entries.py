# SPDX-License-Identifier: Apache-2.0
"""Checks the files in commit messages, because another process made the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import ADDED, DATA, entry_schema
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.reachable_files import live_files
from lakeformat.iceberg.write.message import IcebergCommitMessage
from lakeformat.iceberg.write.settings import data_location
from lakeformat.storage.location import location_of, one_spelling
from lakeformat.tables.parallel import in_parallel

__all__ = ["checked_entries", "files_of", "find_published", "refuse_published", "require_present"]

_FIXED = {"status": ADDED, "content": DATA, "file_format": "PARQUET"}
_OF_NEW_FILES = (
    "snapshot_id",
    "sequence_number",
    "file_sequence_number",
    "key_metadata",
    "equality_ids",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
"""Columns that must be null in the entries of files that are not published."""
_DATA_MANIFESTS = 0
_SPEC_ID = "spec_id"


def checked_entries(
    loaded: LoadedMetadata, uri: str, messages: Sequence[IcebergCommitMessage]
) -> list[pa.Table]:
    """Return the manifest entries in messages, as one table for each partition spec.

    Raise ``InvalidRequestError`` if a message belongs to another table, is damaged, repeats a file,
    or names a file outside of the directory of data files.
    """
    by_spec: dict[int, list[pa.Table]] = {}
    for message in messages:
        if message.table_uuid != (loaded.metadata.table_uuid or ""):
            whose, advice = f"{message.table}, not for {uri}", "commit them there"
            if message.table == uri:
                whose = f"an earlier table at {uri}, which was dropped and created again since"
                advice = "write the rows again"
            raise InvalidRequestError(
                f"these files were written for {whose}. Nothing was published: {advice}"
            )
        schema = message.entries.schema
        if schema.names.count(_SPEC_ID) != 1 or schema.field(_SPEC_ID).type != pa.int32():
            raise _damaged(uri, f"the files of a message have no column {_SPEC_ID} of type int32")
        spec_ids = message.entries[_SPEC_ID]
        for spec_id in spec_ids.unique().to_pylist():
            of_spec = message.entries.filter(pc.equal(spec_ids, spec_id))
            by_spec.setdefault(spec_id, []).append(_checked(loaded, uri, spec_id, of_spec))
    found = [pa.concat_tables(tables) for _, tables in sorted(by_spec.items())]
    paths = [one_spelling(each) for some in found for each in some["file_path"].to_pylist()]
    if len(set(paths)) < len(paths):
        [(repeated, _)] = Counter(paths).most_common(1)
        raise _damaged(uri, f"they name the file {repeated} more than once")
    return found


def files_of(entries: Iterable[pa.Table]) -> list[str]:
    """Return the URIs of the files in manifest entries."""
    return [path for some in entries for path in some["file_path"].to_pylist()]


def require_present(loaded: LoadedMetadata, uri: str, entries: Iterable[pa.Table]) -> None:
    """Raise ``InvalidRequestError`` if a file of the entries does not exist.

    An abort of the message, or a removal of orphan files, may have deleted the file.
    """

    def is_there(address: str) -> bool:
        storage, path = loaded.places.place(address)
        return storage.exists(path)

    paths = files_of(entries)
    there = in_parallel(is_there, paths)
    if not all(there):
        missing, count = paths[there.index(False)], there.count(False)
        raise InvalidRequestError(
            f"{count} of {len(paths)} files to commit to {uri} {'does' if count == 1 else 'do'} "
            f"not exist, such as {missing}: probably an abort of the message or an orphan removal "
            "has deleted it. Nothing was published: write the rows again"
        )


def refuse_published(
    loaded: LoadedMetadata,
    uri: str,
    entries: Iterable[pa.Table],
    manifests: Iterable[pa.Table],
) -> None:
    """Raise ``InvalidRequestError`` if a file of the entries is live in one of the manifests.

    Each of ``manifests`` is one row of a manifest list.
    """
    if (found := find_published(loaded, entries, manifests)) is not None:
        raise InvalidRequestError(
            f"{found} is published already in {uri}, so nothing was done: pass each message once, "
            "and only messages that are not committed"
        )


def find_published(
    loaded: LoadedMetadata, entries: Iterable[pa.Table], manifests: Iterable[pa.Table]
) -> str | None:
    """Return the URI of a file of the entries that is live in one of the manifests; None if there
    is none.

    Each of ``manifests`` is one row of a manifest list.
    """
    wanted = {one_spelling(path): path for path in files_of(entries)}
    data = [each for each in manifests if each["content"][0].as_py() == _DATA_MANIFESTS]
    live = live_files(loaded, data)
    return next((wanted[spelled] for spelled in live if spelled in wanted), None)


def _checked(loaded: LoadedMetadata, uri: str, spec_id: object, entries: pa.Table) -> pa.Table:
    metadata = loaded.metadata
    if not any(each.spec_id == spec_id for each in metadata.partition_specs):
        raise InvalidRequestError(
            f"these messages cannot be used with {uri}: the table has no partition spec "
            f"{spec_id!r}; probably an expiry with clean_metadata has removed it. Nothing was "
            "done: write the rows again"
        )
    assert isinstance(spec_id, int)
    schema = entry_schema(partition_type(metadata, metadata.spec_of(spec_id)))
    try:
        found = entries.select(schema.names).cast(schema).combine_chunks()
    except (pa.ArrowException, KeyError, ValueError) as reason:
        raise _damaged(uri, str(reason)) from None
    for name, value in _FIXED.items():
        if len(wrong := found[name].filter(pc.not_equal(found[name], value))):
            raise _damaged(uri, f"an entry has the {name} {wrong[0]}, but must have {value}")
    for name in _OF_NEW_FILES:
        if found[name].null_count < len(found):
            raise _damaged(uri, f"a new file has a value for {name}, which must be null")
    for name in ("record_count", "file_size_in_bytes"):
        if pc.min(found[name]).as_py() < 1:
            raise _damaged(uri, f"a file has {name} {pc.min(found[name])}, which must be above 0")
    for path in found["file_path"].to_pylist():
        _require_inside(loaded, uri, path)
    return found


def _require_inside(loaded: LoadedMetadata, uri: str, address: str) -> None:
    """Raise ``InvalidRequestError`` unless ``address`` is a Parquet file below the directory in
    which writers create data files.
    """
    directory = data_location(loaded.metadata)
    try:
        loaded.places.place(address)
        is_inside = location_of(directory).holds(location_of(address))
    except LakeError as reason:
        raise _damaged(uri, f"a file has the address {address!r}: {reason}") from None
    if not is_inside or not address.endswith(".parquet"):
        raise _damaged(uri, f"{address!r} is not a data file below {directory}")


def _damaged(uri: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"these messages cannot be used with {uri}: {reason}. Nothing was done: pass messages that "
        "a writer of this table prepared, each once and unchanged"
    )
