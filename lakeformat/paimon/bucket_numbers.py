"""The numbers of buckets with a meaning of their own, as values of ``bucket`` and in metadata."""

from __future__ import annotations

__all__ = ["POSTPONE_BUCKET", "UNAWARE_BUCKET"]

UNAWARE_BUCKET = -1
"""An append table without buckets, or a keyed table that gets as many as its keys need."""

POSTPONE_BUCKET = -2
"""The bucket of rows that get their bucket at the next compaction."""
