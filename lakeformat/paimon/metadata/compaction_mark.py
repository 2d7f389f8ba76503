"""The mark of this project's compactions: a property of their snapshots.

Other programs leave it out, and keep it where they copy a snapshot. So a compaction without the
mark was made by another program, or before there was one.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.paimon.metadata.snapshot import CommitKind, Snapshot

__all__ = ["COMPACTION_MARK", "is_foreign_compaction", "marked"]

COMPACTION_MARK = "lake.compaction"
_MADE_BY = "lakeformat"


def marked(kind: CommitKind, properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties of a snapshot to publish: those given, and the mark if it is a compaction."""
    if kind is not CommitKind.COMPACT:
        return properties
    return {**properties, COMPACTION_MARK: _MADE_BY}


def is_foreign_compaction(snapshot: Snapshot) -> bool:
    """Return True for a compaction that does not bear the mark."""
    if snapshot.commit_kind is not CommitKind.COMPACT:
        return False
    return COMPACTION_MARK not in (snapshot.properties or {})
