# SPDX-License-Identifier: Apache-2.0
"""The names that a glob matches: the same for local files and for those of a bucket."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

__all__ = ["IGNORED", "is_match", "without_unfinished"]

IGNORED = (".", "_")
"""The first characters of names that are not data."""


def is_match(name: str, part: str) -> bool:
    """Return True if a part of a glob matches a name. A leading dot must be in the part, too."""
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def without_unfinished(paths: Iterable[str], pattern: str) -> list[str]:
    """Return the paths without those that ``**`` does not match: files below directories of
    unfinished files, such as Spark's ``_temporary``.
    """
    parts = pattern.split("/")
    if "**" not in parts:
        return [*paths]
    start = parts.index("**")
    wanted = [part for part in parts[start:] if part.startswith(IGNORED)]

    def is_ignored(name: str) -> bool:
        is_asked = any(fnmatchcase(name, part) for part in wanted)
        return name.startswith(IGNORED) and "=" not in name and not is_asked

    return [path for path in paths if not any(map(is_ignored, path.split("/")[start:-1]))]
