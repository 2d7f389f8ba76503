# SPDX-License-Identifier: Apache-2.0
"""The advice in errors about a damaged metadata file."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Remedy"]


class Remedy(StrEnum):
    """The advice for each kind of damaged metadata file."""

    SNAPSHOT = (
        "restore the file from a backup. Without a backup, if it is the newest snapshot: stop all "
        "writers, move the file out of the directory, and run `lake repair-hints`; then the "
        "snapshot before it is the newest again. A rollback cannot do this, because it reads the "
        "file"
    )
    SCHEMA = (
        "restore the schema file from a backup: without it, data files that were written under "
        "that schema cannot be read"
    )
    TAG = (
        "restore the file from a backup. Without a backup: move the file out of the directory, and "
        "create the tag again if its snapshot still exists. If not, the files that only the tag "
        "kept are orphans"
    )
    CHANGELOG = "restore the file from a backup, or delete it: its changes are then lost"
    CONSUMER = "delete the file, or set the consumer to the snapshot that it should read next"
    STATISTICS = "restore the file from a backup, or run ANALYZE again"
    INTENT = (
        "it is left over from an interrupted expiry: delete it, and remove orphan files afterwards"
    )
    UNFINISHED_BRANCH = (
        "the file hides a branch while a call creates, deletes or renames the branch. If no such "
        "call is running: delete the file and repeat the call that was interrupted; repeat a "
        "creation without exist_ok. If the repeated call fails because a branch exists: delete the "
        "branch that the file is named after, and repeat the call once more. Exception: if the "
        "call was to rename the branch that you have just deleted, do not repeat it, because the "
        "branch with the new name is complete. Remove orphan files afterwards"
    )
