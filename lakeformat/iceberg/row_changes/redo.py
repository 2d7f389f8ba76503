# SPDX-License-Identifier: Apache-2.0
"""Checks that an upsert of a repeated run does not replace newer rows.

The run repeats an earlier one. If later commits have written newer rows with the same keys, the
upsert would replace them by older rows. So the check fails if a commit after the earlier run may
have added rows with the same keys, has deleted rows of the earlier run, or has removed files of the
earlier run. It also fails if snapshots that the check needs have expired. Compactions directly
after the earlier run are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import dropwhile

import pyarrow as pa
import pyarrow.compute as pc

from lakeformat.iceberg.choice import snapshot_text
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.manifest import DATA, live_entries, read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.snapshot import Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.iceberg.write.file_choice import may_meet
from lakeformat.iceberg.write.followed_files import FollowedFiles, files_of
from lakeformat.iceberg.write.redo import find_earlier, has_newer_deletes, refusal
from lakeformat.rows.conditions.filter import PredicateFilter
from lakeformat.tables.commit_id import KEEP_BOTH, CommitId

__all__ = ["require_newest"]

_REPLACE = "replace"


def require_newest(
    handle: TableHandle,
    loaded: LoadedMetadata,
    commit: CommitId | None,
    keys: PredicateFilter,
) -> None:
    """Raise ``InvalidRequestError`` if a later commit may have changed rows with the same keys.

    Later commits are those after the commit whose rows ``commit`` replaces; without
    ``commit.replaces`` nothing is checked. All rows with the keys of the upsert meet the condition
    ``keys``.
    """
    if commit is None or commit.replaces is None:
        return
    reference = loaded.metadata.references.get(handle.branch)
    history = [*loaded.metadata.ancestry(None if reference is None else reference.snapshot_id)]
    earlier = find_earlier(loaded, history, commit, handle.uri)
    if earlier is None:
        return
    advice = f"To publish the rows nevertheless, {KEEP_BOTH}"
    refused = partial(refusal, commit, handle.uri, advice=advice)
    if earlier not in history:
        raise refused("later snapshots have expired, and may have changed the same keys")
    later = history[: history.index(earlier)]
    # A compaction can hold newer rows only if it follows a commit of such rows.
    newer = [*dropwhile(lambda each: each.operation == _REPLACE, reversed(later))]
    if not newer:
        return
    manifests = read_manifest_list(loaded.places, history[0])
    live = _live_data(loaded, manifests)
    own = [earlier, *later[len(newer) :]]
    if has_newer_deletes(loaded, manifests, [_added_by(own, each) for each in live]):
        raise refused("rows of the earlier commit were deleted or updated")
    paths = frozenset[str]().union(*(files_of(loaded, each) for each in own))
    if removing := FollowedFiles(loaded, paths, may_mix=True).through(later[: len(newer)]):
        raise refused(
            f"{snapshot_text(removing)} has rewritten or removed files of the earlier commit"
        )
    for entries in (_added_by(newer, each) for each in live):
        if (found := _first_that_may_meet(keys, entries, loaded.metadata)) is not None:
            by = next(each for each in newer if each.snapshot_id == found)
            raise refused(
                f"{snapshot_text(by)} has added rows that may have the same keys, and this commit "
                "would replace them by older ones"
            )


def _live_data(loaded: LoadedMetadata, manifests: pa.Table) -> list[pa.Table]:
    data = manifests.filter(pc.equal(manifests["content"], DATA))
    return [
        live_entries(each) for each in read_entries(loaded.places, loaded.metadata, data).values()
    ]


def _added_by(snapshots: Sequence[Snapshot], entries: pa.Table) -> pa.Table:
    ids = pa.array([each.snapshot_id for each in snapshots], pa.int64())
    return entries.filter(pc.is_in(entries["snapshot_id"], ids)).combine_chunks()


def _first_that_may_meet(
    keys: PredicateFilter, entries: pa.Table, metadata: TableMetadata
) -> int | None:
    """Return the id of a snapshot that may have added a row with one of the keys.

    Return None if no file in ``entries`` may have such a row.
    """
    if not len(entries):
        return None
    spec = metadata.spec_of(entries["spec_id"][0].as_py())
    found = entries.filter(may_meet(keys, metadata, spec, entries))
    return found["snapshot_id"][0].as_py() if len(found) else None
