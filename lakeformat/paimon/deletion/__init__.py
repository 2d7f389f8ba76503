"""Deleting files without fear: what leads to a file, what still needs it, and its removal.

Whoever deletes files of a table does it in this order, so that a crash at any moment harms no
snapshot, tag or branch that stays:

1. ``announce`` an ``Intent`` (``intent.py``): what is about to become unreachable. Whoever makes a
   tag, branch or consumer writes it first and then calls ``refuse_if_expiring``.
2. ``Protection`` (``protection.py``) says what must stay: other tags, other branches, what this
   branch keeps. ``Candidates`` (``candidates.py``) are the files that may go; ``spare`` takes out
   of them what is protected.
3. Make the snapshot, tag or branch unreachable: delete its file.
4. ``Deleter.remove`` (``delete.py``) the files: data and index files before the manifests that
   name them, manifests before their lists, so that whatever is left after a crash can be found
   again. ``remove_empty_directories`` last. ``withdraw`` the intent.

``metadata_of`` (``reachable_files.py``) names the manifests, lists, index files and statistics
a snapshot leads to, ``metadata_removals`` those of them that may go; ``add_candidates``
adds the data or
changelog files of manifests to the candidates.
``Removal`` is one file with its kind, size and the reason why it goes: a dry run prints these.
"""

from __future__ import annotations

from lakeformat.paimon.deletion.candidates import Candidates
from lakeformat.paimon.deletion.delete import Deleted, Deleter, OnRemoval
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
from lakeformat.paimon.deletion.removal import FileClass, Removal

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
