# SPDX-License-Identifier: Apache-2.0
"""Marks commits with unknown outcome, so that another process of the driver keeps their files.

Spark commits and aborts in two processes. Only the user who runs the driver can enter the directory
of the marks: if another user deleted a mark, the abort would delete files that a snapshot may need.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from pathlib import Path

import lakeformat as lake

__all__ = ["is_unknown", "mark_unknown"]

_log = logging.getLogger(__name__)


def mark_unknown(commit: lake.CommitId) -> None:
    """Mark the outcome of a commit as unknown, so that the abort in another process keeps its
    files. Without a safe directory no mark is written: then every abort keeps its files.
    """
    directory = _directory()
    if directory is not None:
        (directory / _name(commit)).touch()


def is_unknown(commit: lake.CommitId) -> bool:
    """Return True if the files of a commit must be kept: the commit has a mark, or there is no safe
    directory for marks.
    """
    directory = _directory()
    return directory is None or (directory / _name(commit)).exists()


def _name(commit: lake.CommitId) -> str:
    user = hashlib.sha256(commit.user.encode()).hexdigest()[:32]
    return f"{user}-{commit.identifier}"


def _directory() -> Path | None:
    """Return this user's directory of marks; None, with a warning in the log, if it cannot be
    created, or if another user owns it or can enter it.
    """
    path = Path(tempfile.gettempdir(), f"lake-outcome-unknown-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        found, reason = None, str(error)
    else:
        reason = "it is not a directory that only this user may enter"
    if found is not None and _is_private(found):
        return path
    _log.warning(
        "cannot record commits with an unknown outcome in the directory %s: %s. So the files of "
        "all failed writes are kept as orphans. Delete %s, or set TMPDIR to a directory of this "
        "user",
        *(path, reason, path),
    )
    return None


def _is_private(found: os.stat_result) -> bool:
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not stat.S_IMODE(found.st_mode) & 0o077
