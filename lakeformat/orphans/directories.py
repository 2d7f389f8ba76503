"""Where a table keeps its files: its directories, listed one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum

from lakeformat.handle import TableHandle
from lakeformat.layout import MAIN_BRANCH, TableLayout, partition_directory
from lakeformat.metadata.branch_directory import branches
from lakeformat.metadata.schema_file import read_schema, schema_ids
from lakeformat.storage import FileInfo, Storage, resolve

__all__ = ["Area", "Listing", "TableDirectories", "find_directories"]

_BUCKET = re.compile(r"bucket-(\d+|postpone)")
_AT_A_TIME = 64
_READERS = 16


class Area(Enum):
    """What a directory holds."""

    BUCKET = "bucket"
    """Data and changelog files, maybe index files."""
    SHARED = "shared"
    """Manifests, index files or statistics of all branches."""
    BRANCH = "branch"
    """What a branch has of its own: only files prepared for publication may go."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of one directory."""

    area: Area
    storage: Storage
    directory: str
    files: Sequence[FileInfo]


@dataclass(frozen=True, slots=True)
class TableDirectories:
    """The directories a table puts files in; all others are nobody's business here."""

    roots: tuple[tuple[Storage, str], ...]
    """Where partitions and buckets lie."""
    shared: tuple[str, ...]
    of_branches: tuple[str, ...]
    partition_keys: tuple[str, ...]
    storage: Storage = field(repr=False)
    external_paths: tuple[str, ...] = ()
    """Addresses outside of the table that one of its schemas names."""
    readers: int = _READERS

    def listings(self) -> Iterator[Listing]:
        """List each directory once, a few at a time, with no more than those in memory."""
        for area, directories in ((Area.BRANCH, self.of_branches), (Area.SHARED, self.shared)):
            for directory, found in self._each(self.storage, directories):
                yield Listing(area, self.storage, directory, _files(found))
        for storage, root in self.roots:
            for directory, found in self._buckets(storage, root):
                yield Listing(Area.BUCKET, storage, directory, _files(found))

    def _buckets(self, storage: Storage, root: str) -> Iterator[tuple[str, list[FileInfo]]]:
        """The deepest directories first, so that few wait."""
        prefixes = [partition_directory([(key, "")]).lower() for key in self.partition_keys]
        waiting = [(root, 0)]
        while waiting:
            window, waiting = waiting[-_AT_A_TIME:], waiting[:-_AT_A_TIME]
            depths = dict(window)
            for directory, found in self._each(storage, [path for path, _ in window]):
                depth = depths[directory]
                if depth > len(prefixes):
                    yield directory, found
                    continue
                waiting += [
                    (info.path, depth + 1)
                    for info in found
                    if info.is_directory and _is_inside(info.name, prefixes[depth:])
                ]

    def _each(
        self, storage: Storage, directories: Sequence[str]
    ) -> Iterator[tuple[str, list[FileInfo]]]:
        if self.readers == 1 or len(directories) == 1:
            for directory in directories:
                yield directory, storage.list(directory)
            return
        with ThreadPoolExecutor(self.readers) as pool:
            for at in range(0, len(directories), _AT_A_TIME):
                window = directories[at : at + _AT_A_TIME]
                yield from zip(window, pool.map(storage.list, window), strict=True)


def find_directories(handle: TableHandle, *, external_paths: bool) -> TableDirectories:
    """The directories of a table and all its branches; what lies outside only if asked for."""
    storage, layout = handle.storage, handle.layout
    data_paths = {layout.data_path: None}
    outside: dict[str, None] = {}
    for branch in _branches(storage, layout):
        for schema_id in schema_ids(storage, branch):
            options = read_schema(storage, branch, schema_id).options
            data_paths[options.get("data-file.path-directory", "").strip("/")] = None
            for address in options.get("data-file.external-paths", "").split(","):
                if address.strip():
                    outside[address.strip()] = None
    roots = [(storage, _joined(layout.root, path)) for path in data_paths]
    for address in outside if external_paths else ():
        place, directory = resolve(address, storage)
        roots += [(place, _joined(directory.rstrip("/"), path)) for path in data_paths]
    return TableDirectories(
        roots=tuple({place.uri(path): (place, path) for place, path in roots}.values()),
        shared=tuple(_joined(layout.root, name) for name in ("manifest", "index", "statistics")),
        of_branches=tuple(
            directory
            for branch in _branches(storage, layout)
            for directory in (
                branch.snapshot_directory,
                branch.changelog_directory,
                branch.schema_directory,
                branch.tag_directory,
                branch.consumer_directory,
                branch.staged_directory,
            )
        ),
        partition_keys=tuple(handle.schema.partition_keys),
        storage=storage,
        external_paths=tuple(outside),
        readers=handle.options.file_operation_threads or _READERS,
    )


def _is_inside(name: str, prefixes: Sequence[str]) -> bool:
    """Whether a directory is a partition's by its next key, or a bucket's after the last."""
    if prefixes:
        return name.lower().startswith(prefixes[0])
    return _BUCKET.fullmatch(name) is not None


def _branches(storage: Storage, layout: TableLayout) -> Iterator[TableLayout]:
    yield layout.on_branch(MAIN_BRANCH)
    for branch in branches(storage, layout):
        yield layout.on_branch(branch.name)


def _files(found: Sequence[FileInfo]) -> list[FileInfo]:
    return [info for info in found if not info.is_directory]


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
