# SPDX-License-Identifier: Apache-2.0
"""Matches names with a glob, by the same rules for local and for remote files."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

__all__ = ["IGNORED", "is_match", "is_unfinished", "without_unfinished"]

IGNORED = (".", "_")
"""The first characters of the names of files that are ignored."""


def is_match(name: str, part: str) -> bool:
    """Return True if ``part``, one level of a glob such as ``day=*``, matches a name. A name with a
    leading dot needs a ``part`` with a leading dot.
    """
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def is_unfinished(name: str, pattern: str) -> bool:
    """Return True if ``**`` in the pattern does not match a directory with this name, such as
    Spark's ``_temporary``, which has unfinished files.
    """
    if not name.startswith(IGNORED) or "=" in name:
        return False
    parts = pattern.split("/")
    return not any(
        fnmatchcase(name, part) for part in parts[parts.index("**") :] if part.startswith(IGNORED)
    )


def without_unfinished(paths: Iterable[str], pattern: str) -> list[str]:
    """Return the paths without those below a directory that ``**`` does not match."""
    parts = pattern.split("/")
    if "**" not in parts:
        return [*paths]
    start = parts.index("**")
    return [
        path
        for path in paths
        if not any(is_unfinished(name, pattern) for name in path.split("/")[start:-1])
    ]
