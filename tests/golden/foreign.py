"""Tables that other engines wrote in ways this library never does, kept as one archive.

They are unpacked into a test's own directory, so a test may change them.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from tests.golden.folder import as_new_files, golden_archive

__all__ = ["expected_of", "unpack_foreign"]

ARCHIVE = golden_archive("foreign")


def unpack_foreign(name: str, place: Path) -> str:
    """Copy one table below ``place`` and return its location."""
    with tarfile.open(ARCHIVE) as archive:
        inside = f"foreign/{name}/"
        members = [each for each in archive.getmembers() if each.name.startswith(inside)]
        archive.extractall(place, members, filter=as_new_files)
    return str(place / "foreign" / name)


def expected_of(name: str) -> dict[str, Any]:
    """Return what the archive notes about a table, such as its ``rows``."""
    with tarfile.open(ARCHIVE) as archive:
        content = archive.extractfile("foreign/expected.json")
        assert content is not None
        found = json.load(content)[name]
    assert isinstance(found, dict)
    return found
