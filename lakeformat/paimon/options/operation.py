# SPDX-License-Identifier: Apache-2.0
"""The operations on a table; an option can forbid some of them and allow the rest."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Operation"]


class Operation(StrEnum):
    """One kind of work on a table.

    Reading metadata, deleting orphan files and creating branches are not members: no option forbids
    them.
    """

    READ = "read"
    """Read the rows of one snapshot."""
    CHANGES = "changes"
    """Read changes between snapshots, once or as a stream."""
    WRITE = "write"
    """Write, update or delete rows, and commit them."""
    COMPACT = "compact"
    """Rewrite data files or their indexes, and commit them."""
    COMMIT = "commit"
    """Publish a snapshot without writing rows: drop partitions, roll back with ``as_latest``,
    analyze, merge manifests.
    """
    EXPIRE = "expire"
    """Delete old snapshots with the files that only they need.

    A rollback without ``as_latest`` is also this operation: it deletes the snapshots that are newer
    than its target.
    """
    TAG = "tag"
    """Create, rename or delete tags."""
