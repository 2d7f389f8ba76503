"""Where new files go that do not lie below their table: directories that take turns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lakeformat.options import TableOptions
from lakeformat.schema_changes.table_rules import check_external_paths
from lakeformat.storage import Storage, resolve

__all__ = ["ExternalPaths", "FilePlace", "external_paths"]

_ADDRESS = re.compile(r"(?P<scheme>[^:/]+):(?P<authority>//[^/]*)?(?P<path>/.*)?")
_SLASHES = re.compile(r"/+")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A storage and a path in it for one new file."""

    storage: Storage
    path: str
    external_path: str | None = None
    """Its whole address, as manifests keep it, if the file is not where its table says."""


class ExternalPaths:
    """The directories of one bucket outside its table, used in turn."""

    def __init__(self, directories: list[str], near: Storage, first: int) -> None:
        self._directories = directories
        self._near = near
        self._next = first
        for directory in directories:
            resolve(directory, near)  # refuses a storage there is none for before any file

    def next(self, name: str) -> FilePlace:
        """Where the next file goes: where readers will look for it."""
        directory = self._directories[self._next % len(self._directories)]
        self._next += 1
        address = f"{directory}/{name}"
        return FilePlace(*resolve(address, self._near), external_path=address)


def external_paths(
    options: TableOptions, bucket_directory: str, near: Storage, fraction: Callable[[], float]
) -> ExternalPaths | None:
    """What the options say of a bucket; None if its files lie in the table, as they usually do.

    ``bucket_directory`` is the bucket's place relative to the table, ``near`` the table's
    storage. ``fraction`` gives a number from 0 to 1: where several writers begin.
    """
    strategy = options.data_file_external_paths_strategy
    if strategy == "none":
        return None
    check_external_paths(options)
    wanted = options.data_file_external_paths_specific_fs
    chosen = [
        address
        for address in options.data_file_external_paths
        if strategy == "round-robin" or address.partition(":")[0].lower() == wanted
    ]
    first = int(fraction() * len(chosen)) if len(chosen) > 1 else 0
    return ExternalPaths([_below(address, bucket_directory) for address in chosen], near, first)


def _below(address: str, directory: str) -> str:
    """A directory below an address, spelled as Java does: no empty authority, no slash twice."""
    found = _ADDRESS.fullmatch(address)
    assert found is not None, "options hold addresses only"
    authority = (found["authority"] or "").removesuffix("//")
    below = _SLASHES.sub("/", f"{found['path'] or ''}/{directory}")
    return f"{found['scheme']}:{authority}{below}"
