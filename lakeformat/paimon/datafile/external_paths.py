# SPDX-License-Identifier: Apache-2.0
"""Chooses the directories outside a table for its new files."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle

from lakeformat.paimon.datafile.entropy import entropy_directories
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import ExternalRoots, Storage

__all__ = ["ExternalPaths", "FilePlace", "TablePlace", "external_paths"]

_ADDRESS = re.compile(r"(?P<scheme>[^:/]+):(?P<authority>//[^/]*)?(?P<path>/.*)?")
_SLASHES = re.compile(r"/+")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The storage and path of one new file."""

    storage: Storage
    path: str
    external_path: str | None = None
    """The file's URI for its manifest entry, if the file is outside of its table; else None."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """The storage and address of a table, and the directories outside of the table that the caller
    allows.
    """

    storage: Storage
    uri: str
    roots: ExternalRoots

    def place(self, address: str) -> tuple[Storage, str]:
        """Return the storage of an address outside of the table and the path there.

        Raise InvalidRequestError if the caller does not allow the address.
        """
        return self.roots.place(address, self.storage, self.uri)


class ExternalPaths:
    """Chooses an external directory for each new file of one bucket, by the strategy of the
    options.
    """

    def __init__(
        self,
        directories: list[str],
        table: TablePlace,
        choice: Callable[[], int],
        *,
        with_entropy: bool = False,
    ) -> None:
        self._directories = directories
        self._table = table
        self._choice = choice
        self._with_entropy = with_entropy

    def next(self, name: str) -> FilePlace:
        """Return the place of a new file called ``name``."""
        below = f"{entropy_directories(name)}/{name}" if self._with_entropy else name
        address = f"{self._directories[self._choice()]}/{below}"
        return FilePlace(*self._table.place(address), external_path=address)


def external_paths(
    options: TableOptions, bucket_directory: str, table: TablePlace, fraction: Callable[[], float]
) -> ExternalPaths | None:
    """Return the external paths of a bucket; None if the options place its files below the table.

    ``bucket_directory`` is the directory of the bucket relative to the table. ``fraction`` returns
    random numbers from 0 to 1. If paths have weights, a number chooses the path of each new file.
    Otherwise a number chooses only a writer's first path, and the other paths follow in turn.

    Raise InvalidRequestError for a path that the caller does not allow, or that is in another
    table's directory.
    """
    strategy = options.data_file_external_paths_strategy
    if strategy == "none":
        return None
    from lakeformat.paimon.schema_changes.table_rules import (
        check_external_paths,
    )  # few tables need it

    check_external_paths(options)
    wanted = options.data_file_external_paths_specific_fs
    chosen = [
        address
        for address in options.data_file_external_paths
        if strategy != "specific-fs" or address.partition(":")[0].lower() == wanted
    ]
    for address in chosen:  # refuse a path before any file is written
        below = bucket_directory.split("/")
        table.roots.require_no_table(address, table.storage, table.uri, below)
    weights = options.data_file_external_paths_weights if strategy == "weight-robin" else ()
    return ExternalPaths(
        [_below(address, bucket_directory) for address in chosen],
        table,
        _by_weight(weights, fraction) if weights else _in_turn(len(chosen), fraction),
        with_entropy=strategy == "entropy-inject",
    )


def _in_turn(count: int, fraction: Callable[[], float]) -> Callable[[], int]:
    turns = cycle(range(count))
    for _ in range(int(fraction() * count) if count > 1 else 0):
        next(turns)
    return turns.__next__


def _by_weight(weights: Sequence[int], fraction: Callable[[], float]) -> Callable[[], int]:
    ends = [*accumulate(weights)]
    return lambda: bisect_right(ends, fraction() * ends[-1])


def _below(address: str, directory: str) -> str:
    """Return the URI of ``directory`` below ``address`` in Java's spelling.

    It has no empty authority (``file:/a``, not ``file:///a``) and no double slash.
    """
    found = _ADDRESS.fullmatch(address)
    assert found is not None, "options hold addresses only"
    authority = (found["authority"] or "").removesuffix("//")
    below = _SLASHES.sub("/", f"{found['path'] or ''}/{directory}")
    return f"{found['scheme']}:{authority}{below}"
