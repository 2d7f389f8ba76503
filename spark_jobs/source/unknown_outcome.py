"""Commits of which nothing is known, as one process of the driver leaves them for another.

Spark commits and aborts in two processes. The marks lie in a directory of this user alone: where
another user could remove one, files would be deleted that a snapshot may need.
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
    """Leave a mark that keeps the commit's files."""
    directory = _directory()
    if directory is not None:
        (directory / _name(commit)).touch()


def is_unknown(commit: lake.CommitId) -> bool:
    """Return True if the files of a commit have to stay, also where no mark can be trusted."""
    directory = _directory()
    return directory is None or (directory / _name(commit)).exists()


def _name(commit: lake.CommitId) -> str:
    user = hashlib.sha256(commit.user.encode()).hexdigest()[:32]
    return f"{user}-{commit.identifier}"


def _directory() -> Path | None:
    """This user's directory of marks; None if it is another user's, or open to others."""
    path = Path(tempfile.gettempdir(), f"lake-outcome-unknown-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        found, reason = None, str(error)
    else:
        reason = "it is not a directory that this user alone may enter"
    if found is not None and _is_private(found):
        return path
    _log.warning(
        "%s cannot keep which commits have no answer: %s. Files of failed writes stay, as orphans: "
        "remove that path, or set TMPDIR to a directory of this user",
        *(path, reason),
    )
    return None


def _is_private(found: os.stat_result) -> bool:
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return is_ours and not stat.S_IMODE(found.st_mode) & 0o077
