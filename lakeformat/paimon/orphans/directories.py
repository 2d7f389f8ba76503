# SPDX-License-Identifier: Apache-2.0
"""Lists the directories of a table, a few at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from lakeformat.errors import CorruptTableError
from lakeformat.paimon.datafile.entropy import is_entropy_directory
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.layout import MAIN_BRANCH, REGISTERED_MARK, TableLayout, partition_directory
from lakeformat.paimon.metadata.branch_directory import branches, require_branch_still
from lakeformat.paimon.metadata.schema_file import naming_schema, read_schema, schema_ids
from lakeformat.paimon.orphans.readers import Readers, readers_of
from lakeformat.paimon.schema import TableSchema
from lakeformat.storage import FileInfo, Storage

__all__ = ["Area", "DirectoryListing", "TableDirectories", "find_directories"]

_BUCKET = re.compile(r"bucket-(\d+|postpone)")
_AT_A_TIME = 64
_BYTES_OF_A_FILE = 16 << 10
"""The work to list one file, as the number of bytes that a task reads in the same time."""
_BYTES_OF_A_REQUEST = 16 << 20
"""The work to list an empty directory, as the number of bytes that a task reads in the same time.

An executor may limit the work in one task; then this number also limits how many directories are
in the task.
"""


class Area(Enum):
    """The kind of files that a directory contains."""

    BUCKET = "bucket"
    """Data and changelog files, and index files if the table stores them there."""
    SHARED = "shared"
    """Manifests, index files or statistics of all branches."""
    BRANCH = "branch"
    """Metadata of a branch, or marks of unfinished branches. Only temporary files can be orphans
    there.
    """
    OBSERVED = "observed"
    """Files that are written after each commit, such as published Iceberg metadata."""


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The files of one directory."""

    area: Area
    storage: Storage
    directory: str
    files: Sequence[FileInfo]


@dataclass(frozen=True, slots=True)
class TableDirectories:
    """The directories in which a table stores files.

    Other directories below the table are ignored.
    """

    roots: tuple[tuple[Storage, str], ...]
    """The storage and the path of each directory that has partition or bucket directories."""
    shared: tuple[str, ...]
    of_branches: tuple[str, ...]
    partition_keys: tuple[str, ...]
    storage: Storage = field(repr=False)
    external_paths: tuple[str, ...] = ()
    """All values of ``data-file.external-paths`` in the schemas of the table and its branches."""
    readers: Readers = field(default_factory=Readers)

    def listings(self, files_in: Mapping[str, int] | None = None) -> Iterator[DirectoryListing]:
        """Yield the files of each directory once, without listing all directories in advance.

        ``files_in`` maps the path of a partition directory to its estimated number of files. If
        tasks of an executor list the directories, they start with the largest.
        """
        here = Readers(self.readers.threads)
        for area, directories in ((Area.BRANCH, self.of_branches), (Area.SHARED, self.shared)):
            found_in = here.each(self.storage.list, directories, _AT_A_TIME)
            for directory, found in zip(directories, found_in, strict=True):
                yield DirectoryListing(area, self.storage, directory, _files(found))
        prefixes = _prefixes(self.partition_keys)
        for storage, root in self.roots:
            tree = _Tree(storage, prefixes, here)
            for directory, found in self._buckets(tree, root, files_in or {}):
                yield DirectoryListing(Area.BUCKET, storage, directory, found)

    def _buckets(
        self, tree: _Tree, root: str, files_in: Mapping[str, int]
    ) -> Iterator[tuple[str, list[FileInfo]]]:
        """Yield each bucket directory of ``root`` with its files.

        If an executor was given and there are many directories, its tasks list them.
        """
        branches = [(root, 0)] if self.readers.executor is None else tree.branches(root)
        if not self.readers.are_elsewhere(len(branches)):
            yield from tree.buckets(*branches)
            return

        def size_of(branch: _Depth) -> int:
            directory, depth = branch
            if depth > len(tree.prefixes):  # estimate a bucket by the files of its partition
                directory = directory.rpartition("/")[0]
            files = files_in.get(directory.removeprefix(root).strip("/"), 0)
            return _BYTES_OF_A_REQUEST + files * _BYTES_OF_A_FILE

        for found in self.readers.each(tree, branches, 1, size_of):
            yield from found


_Depth: TypeAlias = tuple[str, int]
"""A directory and its depth: 0 for the root, and one more for each directory level below it."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """Lists the partition and bucket directories below a root; it can be pickled for a task."""

    storage: Storage
    prefixes: tuple[str, ...]
    """For each partition key, the beginning of its directory names, such as ``day=``, in lower
    case.
    """
    readers: Readers

    def __call__(self, branch: _Depth) -> list[tuple[str, list[FileInfo]]]:
        return list(self.buckets(branch))

    def buckets(self, *branches: _Depth) -> Iterator[tuple[str, list[FileInfo]]]:
        """Yield each bucket directory in the directory trees ``branches`` with its files.

        The search is depth first, to limit memory.
        """
        waiting = [*branches]
        while waiting:
            window, waiting = waiting[-_AT_A_TIME:], waiting[:-_AT_A_TIME]
            for (directory, depth), found in self._listed(window):
                if depth > len(self.prefixes):
                    yield directory, _files(found)
                    waiting += [
                        (info.path, depth + 1)
                        for info in found
                        if info.is_directory and is_entropy_directory(info.name)
                    ]
                else:
                    waiting += self._below(found, depth)

    def branches(self, root: str) -> list[_Depth]:
        """Return disjoint directory trees in ``root``, which together have all buckets.

        Each is one unit of work; an executor may give several units to one task.
        """
        level = [(root, 0)]
        while len(level) < _AT_A_TIME and level[0][1] <= len(self.prefixes):
            depth = level[0][1]
            below = [each for _, found in self._listed(level) for each in self._below(found, depth)]
            if not below:
                break
            level = below
        return level

    def _listed(self, level: Sequence[_Depth]) -> Iterator[tuple[_Depth, list[FileInfo]]]:
        directories = [directory for directory, _ in level]
        found = self.readers.each(self.storage.list, directories, _AT_A_TIME)
        return zip(level, found, strict=True)

    def _below(self, found: Sequence[FileInfo], depth: int) -> list[_Depth]:
        """Return the directories in ``found`` that belong to the next partition key, or that are
        buckets.

        A symbolic link is returned, too: the storage refuses to list a link, so files behind it are
        never left out silently.
        """
        return [
            (info.path, depth + 1) for info in found if _is_inside(info.name, self.prefixes[depth:])
        ]


def find_directories(
    handle: TableHandle, *, external_paths: bool, readers: Readers | None = None
) -> TableDirectories:
    """Return the directories of a table and all its branches; external paths only on request.

    Raise InvalidRequestError if an external path is in the directory of another table. Another
    table that has the same external path is not noticed.
    """
    storage, layout = handle.storage, handle.layout
    data_paths = {layout.data_path: None}
    outside: dict[str, None] = {}
    for branch in _branches(storage, layout):
        for schema in _schemas(storage, branch):
            options = schema.table_options
            with naming_schema(storage, branch, schema.id):
                data_paths[options.data_file_path_directory] = None
                outside |= dict.fromkeys(options.data_file_external_paths)
    roots = [(storage, _joined(layout.root, path)) for path in data_paths]
    for address in outside if external_paths else ():
        roots += _outside(handle, address, data_paths)
    return TableDirectories(
        roots=tuple({place.uri(path): (place, path) for place, path in roots}.values()),
        shared=tuple(_joined(layout.root, name) for name in ("manifest", "index", "statistics")),
        of_branches=(
            layout.branches_directory,
            *(
                directory
                for branch in _branches(storage, layout)
                for directory in (
                    branch.snapshot_directory,
                    branch.changelog_directory,
                    branch.schema_directory,
                    branch.tag_directory,
                    branch.consumer_directory,
                    branch.staged_directory,
                    branch.stream_directory,
                    branch.run_directory,
                )
            ),
        ),
        partition_keys=tuple(handle.schema.partition_keys),
        storage=storage,
        external_paths=tuple(outside),
        readers=readers or readers_of(handle),
    )


def _outside(
    handle: TableHandle, address: str, data_paths: Iterable[str]
) -> list[tuple[Storage, str]]:
    """Return the directories at the external path ``address`` that may contain partitions.

    Return an empty list if a migration registered plain files there. Raise InvalidRequestError if
    another table is there.
    """
    near, table, allowed = handle.storage, handle.uri, handle.external_roots
    allowed.require_no_table(address, near, table)
    place, directory = allowed.place(address, near, table)
    if place.exists(f"{directory}/{REGISTERED_MARK}"):
        return []  # plain files that a migration registered
    roots = {path: (place, _joined(directory.rstrip("/"), path)) for path in data_paths}
    prefixes = _prefixes(handle.schema.partition_keys)
    for path, root in roots.items():
        here = tuple(filter(None, path.split("/")))
        allowed.require_no_table(address, near, table, here)
        for info in place.list(root[1]):
            if _is_inside(info.name, prefixes):
                allowed.require_no_table(address, near, table, (*here, info.name))
    return [*roots.values()]


def _prefixes(partition_keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(partition_directory([(key, "")]).lower() for key in partition_keys)


def _is_inside(name: str, prefixes: Sequence[str]) -> bool:
    """Return True for the name of a directory of the next partition key.

    If no partition key is left, return True for the name of a bucket directory instead.
    """
    if prefixes:
        return name.lower().startswith(prefixes[0])
    return _BUCKET.fullmatch(name) is not None


def _branches(storage: Storage, layout: TableLayout) -> Iterator[TableLayout]:
    yield layout.on_branch(MAIN_BRANCH)
    for branch in branches(storage, layout):
        yield layout.on_branch(branch.name)


def _schemas(storage: Storage, branch: TableLayout) -> list[TableSchema]:
    """Return every schema of a branch; raise NotFoundError if the branch was deleted meanwhile."""
    try:
        return [read_schema(storage, branch, number) for number in schema_ids(storage, branch)]
    except CorruptTableError:
        require_branch_still(storage, branch)
        raise


def _files(found: Sequence[FileInfo]) -> list[FileInfo]:
    return [info for info in found if not info.is_directory]


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
