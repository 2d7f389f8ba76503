# SPDX-License-Identifier: Apache-2.0
"""Finds the writer of a file by the name of the file, and recognizes temporary files."""

from __future__ import annotations

import re

__all__ = ["is_known", "is_temporary", "writer_of"]

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UNIQUE = re.compile(_UUID)
_PREPARED = re.compile(r"\..+\.[^.]+\.tmp")
"""The name of a temporary file, ``.<name>.<unique>.tmp``, that Java or this library renames
later.
"""
_PREPARED_BY_PYPAIMON = re.compile(rf".+{_UUID}\.tmp")
"""The name of a temporary file of pypaimon: ``<name><unique>.tmp``."""
_LARGE_OBJECTS = ".blob"


def is_known(name: str) -> bool:
    """Return True if a file name has the form that writers give to files of a commit.

    Blob files are excluded, so no removal of orphan files deletes them.
    """
    return writer_of(name) is not None and not name.endswith(_LARGE_OBJECTS)


def writer_of(name: str) -> str | None:
    """Return the unique part that the names of all files of one writer have in common.

    Return None if the name has no such part.
    """
    found = _UNIQUE.findall(name)
    return found[-1] if found else None


def is_temporary(name: str) -> bool:
    """Return True for the name of a temporary file, which its writer renames when it is
    complete.
    """
    return bool(_PREPARED.fullmatch(name) or _PREPARED_BY_PYPAIMON.fullmatch(name))
