# SPDX-License-Identifier: Apache-2.0
"""Deletes files of a table that no kept snapshot, tag, branch or changelog needs.

An expiry, and the deletion of a tag or branch, follow these steps, so that a crash at any moment
damages no snapshot, tag or branch that is kept:

1. For an expiry, ``announce`` writes an ``Intent`` (``intent.py``): the snapshots that will become
   unreachable.
2. ``Protection`` (``protection.py``) finds everything that is kept: other tags, other branches, and
   the other snapshots of this branch. ``Candidates`` (``candidates.py``) are the files to delete;
   ``spare`` removes from them the files that are still needed.
3. The file of the snapshot, tag or branch is deleted, which makes it unreachable.
4. ``Deleter.remove`` (``tables/deleter.py``) deletes the files: data and index files before the
   manifests that name them, manifests before their lists. So after a crash the next run can find
   the remaining files.
5. ``remove_empty_directories`` is called if the option ``snapshot.clean-empty-directories`` is set.
   For an expiry, ``withdraw`` deletes the intent.

The creation of a tag, branch or consumer first writes its file, and then calls
``refuse_if_expiring``.

``metadata_of`` (``reachable_files.py``) returns the manifests, lists, index files and statistics of
a snapshot. ``metadata_removals`` yields the removals of those files that need not be kept.
``add_candidates`` adds the data or changelog files of manifests to the candidates.

``Removal`` is one file with its kind, size and the reason for its removal; a dry run prints these.
"""

from __future__ import annotations

from lakeformat.paimon.deletion.candidates import Candidates
from lakeformat.paimon.deletion.directories import bucket_directories, remove_empty_directories
from lakeformat.paimon.deletion.intent import (
    Intent,
    announce,
    read_intents,
    refuse_if_expiring,
    withdraw,
)
from lakeformat.paimon.deletion.protection import Protection, find_protection
from lakeformat.paimon.deletion.reachable_files import (
    MetadataFiles,
    add_candidates,
    metadata_of,
    metadata_removals,
)
from lakeformat.tables.deleter import Deleted, Deleter, OnRemoval
from lakeformat.tables.removal import FileClass, Removal

__all__ = [
    "Candidates",
    "Deleted",
    "Deleter",
    "FileClass",
    "Intent",
    "MetadataFiles",
    "OnRemoval",
    "Protection",
    "Removal",
    "add_candidates",
    "announce",
    "bucket_directories",
    "find_protection",
    "metadata_of",
    "metadata_removals",
    "read_intents",
    "refuse_if_expiring",
    "remove_empty_directories",
    "withdraw",
]
