# SPDX-License-Identifier: Apache-2.0
"""The errors about a missing or damaged index file."""

from __future__ import annotations

from lakeformat.errors import CorruptTableError

__all__ = ["RESTORE", "missing_file"]

RESTORE = "restore the file from a backup or roll the table back to an earlier snapshot"
"""The advice for a file without which rows cannot be read correctly."""


def missing_file(
    uri: str, referrer: str, otherwise: str = "restore the file from a backup"
) -> CorruptTableError:
    """Return the error for a missing file that ``referrer`` names.

    The error advises to repeat the call if the snapshot of the file has just expired. ``otherwise``
    is its advice for all other cases.
    """
    return CorruptTableError(
        f"{uri} is missing although {referrer} refers to it; if its snapshot has just expired, "
        f"repeat the call. Otherwise {otherwise}"
    )
