# SPDX-License-Identifier: Apache-2.0
"""The directory ``_lake`` of a table: files of this library that no other engine reads.

Java's removal of orphan files ignores names that begin with ``_``. Each branch has its own files.
"""

from __future__ import annotations

from urllib.parse import quote

from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.storage import Storage
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["own_directory"]

_DIRECTORY = "_lake"


def own_directory(handle: TableHandle, name: str) -> tuple[Storage, str]:
    """Return the storage and the path of this library's own directory ``name`` for the branch."""
    places, branch = handle.load().places, handle.branch
    inside = "" if branch == MAIN_BRANCH else f"/branch/branch-{quote(branch, safe='')}"
    return places.storage, f"{places.root}/{_DIRECTORY}{inside}/{name}"
