# SPDX-License-Identifier: Apache-2.0
"""Moves and deletes this library's records of a branch: consumers, streams, runs, staged results.

The commit that renames or deletes a branch does not change the files of these records. So a rename
copies the records before its commit, and deletes the old ones after it. A crash in between leaves
records of a branch that does not exist. They are deleted before a branch gets this name.

A rename keeps its copy of a record even if the old record is deleted before the rename ends. As
soon as the rename is committed, another process can create a branch of the old name, and delete the
old records for it. Then the copy is the only one left.

Records of earlier releases do not name their table. If another table has or had the same directory,
such records are copied, but never deleted.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from lakeformat.errors import LakeError, NotFoundError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.metadata_file import METADATA, decode_metadata, is_metadata_file
from lakeformat.iceberg.own_files import branch_directory
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE

__all__ = ["delete_left_records", "forget_branch", "renamed_records"]

_log = logging.getLogger(__name__)


def delete_left_records(handle: TableHandle, branch: str) -> LoadedMetadata:
    """Delete this library's records of an earlier branch with the name ``branch``.

    Delete nothing if the branch exists. Return the current metadata.
    """
    loaded = handle.load()
    if branch not in loaded.metadata.references:
        _delete(loaded, branch)
    return loaded


def forget_branch(handle: TableHandle, branch: str) -> None:
    """Delete this library's records of a deleted or renamed branch; a failure is only logged.

    Delete nothing if another process has created the branch again.
    """
    try:
        delete_left_records(handle, branch)
    except LakeError as error:
        _log.warning(
            "%s: could not delete the records of consumers, streams and runs of branch %r, which "
            "was deleted or renamed (%s). No action is needed: they are deleted when a branch of "
            "this name is created",
            handle.uri,
            branch,
            error,
        )


@contextmanager
def renamed_records(handle: TableHandle, old: str, new: str) -> Iterator[None]:
    """Copy the records of a branch to its new name, before and after the ``with`` block, which
    commits the rename. Then delete the old records.
    """
    loaded, copied = delete_left_records(handle, new), dict[str, bytes]()
    _copy(loaded, old, new, copied)
    yield
    _copy(loaded, old, new, copied)
    forget_branch(handle, old)


def _copy(loaded: LoadedMetadata, old: str, new: str, copied: dict[str, bytes]) -> None:
    """Copy the records of branch ``old``, and add them to ``copied``.

    At the second call, ``copied`` has the records of the first call. A record is copied again if
    its owner has changed it, or if another process that tried to create branch ``new`` has deleted
    the copy. A copy that branch ``new`` has changed is kept.
    """
    storage = loaded.places.storage
    source, target = branch_directory(loaded, old), branch_directory(loaded, new)
    for each in itertools.chain(*_records(loaded, old)):
        content, there = (_content(storage, f"{place}/{each}") for place in (source, target))
        if content is not None and content != there and there in (None, copied.get(each)):
            storage.overwrite(f"{target}/{each}", content)
            copied[each] = content


def _content(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path, LARGE_FILE)
    except NotFoundError:  # for example, its owner has deleted it
        return None


def _delete(loaded: LoadedMetadata, branch: str) -> None:
    directory = branch_directory(loaded, branch)
    own, unnamed = _records(loaded, branch)
    if unnamed and not _is_shared(loaded):
        own += unnamed
    for each in own:
        loaded.places.storage.delete(f"{directory}/{each}")


def _records(loaded: LoadedMetadata, branch: str) -> tuple[list[str], list[str]]:
    """Return the paths of a branch's records below its directory: those of this table, and those
    of earlier releases, which name no table.
    """
    storage, uuid = loaded.places.storage, loaded.metadata.table_uuid
    own: list[str] = []
    unnamed: list[str] = []
    for kind in storage.list(branch_directory(loaded, branch)):
        for each in storage.list(kind.path):
            if not each.is_directory:
                (unnamed if uuid else own).append(f"{kind.name}/{each.name}")
            elif uuid and each.name == quote(uuid, safe=""):
                inside = storage.list(each.path)
                own += [f"{kind.name}/{each.name}/{record.name}" for record in inside]
    return own, unnamed


def _is_shared(loaded: LoadedMetadata) -> bool:
    """Return True if the directory has metadata of another table, or damaged metadata."""
    storage, metadata = loaded.places.storage, loaded.metadata
    names = {each.metadata_file.rpartition("/")[2] for each in metadata.metadata_log}
    for each in storage.list(f"{loaded.places.root}/{METADATA}"):
        if each.path == loaded.path or each.name in names or not is_metadata_file(each.name):
            continue
        try:
            content = storage.read(each.path, LARGE_FILE)
            found = decode_metadata(content, storage.uri(each.path))
        except NotFoundError:  # a commit has deleted it
            continue
        except LakeError:
            return True
        if found.table_uuid != metadata.table_uuid:
            return True
    return False
