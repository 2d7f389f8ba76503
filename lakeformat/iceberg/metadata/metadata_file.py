# SPDX-License-Identifier: Apache-2.0
"""Finds and reads the current metadata file of a table without a catalog.

Such tables have files ``v<N>.metadata.json`` and a version hint, a file with N. Catalogs write
``<N>-<uuid>.metadata.json``, and store the name of the current file in the catalog.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lakeformat.errors import CorruptTableError, InvalidRequestError, NotFoundError
from lakeformat.iceberg.metadata.table_metadata import TableMetadata, metadata_from_json
from lakeformat.storage import Storage
from lakeformat.storage.base import LARGE_FILE
from lakeformat.tables.json_file import RESTORE, decode_json_file

__all__ = [
    "HINT",
    "METADATA",
    "METADATA_PATH",
    "decode_metadata",
    "find_metadata_file",
    "find_version",
    "hint_above",
    "hinted_number",
    "is_metadata_file",
    "metadata_directory",
    "number_of",
    "read_metadata_file",
    "version_of",
]

METADATA = "metadata"
METADATA_PATH = "write.metadata.path"
"""The table property with the URI of the directory of manifests and metadata files; by default
``metadata`` in the table's directory.
"""
HINT = "version-hint.text"
_NAME = re.compile(r"(?:v(\d+)|(\d+)-[^/]+?)(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII)
_MOST_DIGITS = 18
"""The number of digits of the largest version that a version hint can have."""
_log = logging.getLogger(__name__)
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class _NumberedFile:
    name: str
    number: int


def metadata_directory(metadata: TableMetadata) -> str:
    """Return the URI of the directory of manifests and metadata files, without a final slash."""
    moved = metadata.properties.get(METADATA_PATH, "").rstrip("/")
    return moved or f"{metadata.location.rstrip('/')}/{METADATA}"


def is_metadata_file(name: str) -> bool:
    """Return True if ``name`` is the name of a metadata file."""
    return _NAME.fullmatch(name) is not None


def find_metadata_file(storage: Storage, root: str) -> str:
    """Return the path of the current metadata file in the directory of a table.

    The search begins with the number in the version hint, and continues with higher numbers.
    If the hint is missing or names no file, the file with the highest number is current. Log a
    warning if the hint has a higher number. Raise ``InvalidRequestError`` if several files have the
    highest number, and ``NotFoundError`` if there is no metadata file.
    """
    directory = f"{root}/{METADATA}"
    hinted, newest = _follow_hint(storage, root)
    if newest is not None:
        return newest
    found = [each for info in storage.list(directory) if (each := _numbered(info.name))]
    if not found:
        raise NotFoundError(
            f"{storage.uri(directory)} has no file of table metadata: check the table's address"
        )
    highest = max(each.number for each in found)
    names = [each.name for each in found if each.number == highest]
    if len(names) > 1:
        raise InvalidRequestError(
            f"{storage.uri(directory)} has {len(names)} metadata files with the number {highest}: "
            f"{', '.join(names)}. Only the catalog of the table knows which one is current: open "
            "the table by the address of the current file"
        )
    if hinted is not None and hinted > highest:
        _log.warning(
            "%s. Restore lost files from a backup before the next commit, because that commit uses "
            "the number %d again. Do not restore lost files after that commit. If no file was "
            "lost, write %d into the hint",
            *(hint_above(storage, root, hinted, names[0]), highest + 1, highest),
        )
    return f"{directory}/{names[0]}"


def hint_above(storage: Storage, root: str, hinted: int, newest: str) -> str:
    """Return a clause for a message.

    The clause reports that the number in the version hint is higher than the number of ``newest``,
    the newest metadata file.
    """
    return (
        f"the version hint {storage.uri(f'{root}/{METADATA}/{HINT}')} has {hinted}, but the newest "
        f"metadata file is {newest}: the hint is wrong, or newer metadata files up to version "
        f"{hinted} were lost, with their changes"
    )


def read_metadata_file(storage: Storage, path: str) -> TableMetadata:
    """Read a metadata file, which may be compressed with gzip.

    Raise ``NotFoundError`` if it does not exist; other errors as for ``decode_metadata``.
    """
    return decode_metadata(storage.read(path, LARGE_FILE), storage.uri(path))


def decode_metadata(
    content: bytes,
    uri: str,
    build: Callable[[dict[str, Any]], TableMetadata] = metadata_from_json,
) -> TableMetadata:
    """Parse the content of a metadata file, which may be compressed with gzip.

    ``build`` creates the metadata from the JSON object. Raise ``CorruptTableError`` for damaged
    content, and ``UnsupportedError`` for a newer format version or an encrypted table; both name
    ``uri``.
    """
    if content.startswith(_GZIP_MAGIC):
        content = _unpacked(content, uri)
    return decode_json_file(content, uri, build)


def version_of(path: str) -> int | None:
    """Return N of a file ``v<N>.metadata.json``.

    Return None for any other name, such as ``<N>-<uuid>.metadata.json``.
    """
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return None if found is None or found[1] is None else int(found[1])


def find_version(storage: Storage, root: str, number: int) -> str | None:
    """Return the path of ``v<number>.metadata.json``, compressed or not; None if it is missing."""
    for end in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"):
        path = f"{root}/{METADATA}/v{number}{end}"
        if storage.exists(path):
            return path
    return None


def hinted_number(storage: Storage, root: str) -> int | None:
    """Return the number in the version hint; None if the hint is missing or is not a number."""
    try:
        text = storage.read(f"{root}/{METADATA}/{HINT}").decode("ascii", "replace").strip()
    except NotFoundError:
        return None
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


def number_of(path: str) -> int | None:
    """Return N of a file ``v<N>.metadata.json`` or ``<N>-<uuid>.metadata.json``.

    Return None for any other name.
    """
    found = _numbered(path.rpartition("/")[2])
    return None if found is None else found.number


def _follow_hint(storage: Storage, root: str) -> tuple[int | None, str | None]:
    """Return the number in the version hint, and the newest metadata file, found by counting up
    from this number.

    The number is None if the hint is missing or is not a number; the file is None if the hint names
    no file.
    """
    hinted, newest = hinted_number(storage, root), None
    number = hinted
    while number is not None and (found := find_version(storage, root, number)) is not None:
        number, newest = number + 1, found
    return hinted, newest


def _numbered(name: str) -> _NumberedFile | None:
    found = _NAME.fullmatch(name)
    return None if found is None else _NumberedFile(name, int(found[1] or found[2]))


def _unpacked(content: bytes, uri: str) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        unpacked = stream.decompress(content, LARGE_FILE)
    except zlib.error as reason:
        raise CorruptTableError(
            f"{uri} cannot be decompressed with gzip: {reason}; {RESTORE}"
        ) from None
    if not stream.eof:
        raise CorruptTableError(
            f"{uri} ends early, or its decompressed size is far beyond that of table metadata; "
            f"{RESTORE}"
        )
    return unpacked
