"""What a file's name says: who made it, or that it was prepared for publication and left."""

from __future__ import annotations

import re

__all__ = ["is_known", "is_temporary", "writer_of"]

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UNIQUE = re.compile(_UUID)
_PREPARED = re.compile(r"\..+\.[^.]+\.tmp")
"""``.<name>.<unique>.tmp``, as Java and this library prepare what they publish."""
_PREPARED_BY_PYPAIMON = re.compile(rf".+{_UUID}\.tmp")
"""``<name><unique>.tmp``."""
_LARGE_OBJECTS = ".blob"


def is_known(name: str) -> bool:
    """Whether some writer's commit would name such a file.

    Large objects are left out: they are shared by packs, which no manifest names.
    """
    return writer_of(name) is not None and not name.endswith(_LARGE_OBJECTS)


def writer_of(name: str) -> str | None:
    """The unique part that all files of one writer share; None if no writer names files so."""
    found = _UNIQUE.findall(name)
    return found[-1] if found else None


def is_temporary(name: str) -> bool:
    """Whether a file was to be published under another name."""
    return bool(_PREPARED.fullmatch(name) or _PREPARED_BY_PYPAIMON.fullmatch(name))
