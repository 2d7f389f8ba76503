"""What errors about a missing or damaged index file have in common."""

from __future__ import annotations

from lakeformat.errors import CorruptTableError

__all__ = ["RESTORE", "missing_file"]

RESTORE = "restore the file from a backup or roll the table back to an earlier snapshot"
"""The way out when rows cannot be read rightly without the file."""


def missing_file(
    uri: str, referrer: str, otherwise: str = "restore the file from a backup"
) -> CorruptTableError:
    """The error when a file is gone that another one refers to."""
    return CorruptTableError(
        f"{uri} is missing although {referrer} refers to it; if the snapshot was just expired, "
        f"read again from the latest one, else {otherwise}"
    )
