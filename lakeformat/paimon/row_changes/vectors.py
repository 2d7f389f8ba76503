# SPDX-License-Identifier: Apache-2.0
"""Updates the deletion vectors of a bucket after more of its rows are deleted."""

from __future__ import annotations

from collections.abc import Mapping, Set

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.row_changes.find import Positions, positioned_rows
from lakeformat.paimon.row_changes.plan import ChangeUnit
from lakeformat.paimon.write.vector_file import write_vector_file

__all__ = ["replace_vectors"]

_Entries = tuple[IndexManifestEntry, ...]


def replace_vectors(
    handle: TableHandle, unit: ChangeUnit, marked: Mapping[str, Positions], removed: Set[str]
) -> tuple[_Entries, _Entries]:
    """Write the new deletion vectors; return the index files to add and those to delete.

    ``marked`` has the positions of newly deleted rows by data file; ``removed`` are the data files
    that the change deletes.
    """
    replaced = _replaced(handle, unit, marked.keys() | removed, is_marked=bool(marked))
    named = {each.data_file_name for entry in replaced for each in entry.ranges or ()}
    known = positioned_rows(handle, unit).vectors(unit.partition, unit.bucket)
    stay = (named & unit.live) - removed
    vectors = {name: known[name] for name in sorted(stay)}
    for name, positions in marked.items():
        vector = DeletionVector.of(positions)
        vectors[name] = vectors[name].merged(vector) if name in vectors else vector
    if not vectors:
        return (), replaced
    return (write_vector_file(handle, unit.partition, unit.bucket, vectors),), replaced


def _replaced(
    handle: TableHandle, unit: ChangeUnit, concerned: Set[str], *, is_marked: bool
) -> _Entries:
    """Return the index files to replace, given the names of the data files ``concerned``.

    Index files with a vector of one of these data files are replaced. In a table with fixed
    buckets, all index files of the bucket are replaced if one of them must be replaced, or if rows
    are newly deleted (``is_marked``).
    """
    found = tuple(
        entry
        for entry in unit.vectors
        if concerned & {each.data_file_name for each in entry.ranges or ()}
    )
    is_queue = not is_unaware(handle)
    return unit.vectors if is_queue and (found or is_marked) else found
