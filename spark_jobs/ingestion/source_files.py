# SPDX-License-Identifier: Apache-2.0
"""Finds the source files of a request, and their format."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

import lakeformat as lake
from lakeformat.files.foreign.column_mapping import BY_NAME, ColumnMapping
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, SourceFormat, TextDialect, format_of
from lakeformat.types.arrow_types import type_of_column
from lakeformat.types.closest import closest
from lakeformat.types.count_text import counted
from spark_jobs.ingestion.glob_names import IGNORED, without_unfinished
from spark_jobs.ingestion.remote_files import is_remote, opener_of, remote_files

if TYPE_CHECKING:
    from lakeformat import TableSchema
    from lakeformat.types.types import DataType

__all__ = ["FileState", "SourceFiles", "change_of", "find_paths", "find_source", "find_states"]

FileState: TypeAlias = tuple[int, int | str]
"""The size of a file in bytes, and its ETag or the time of its last change in epoch
milliseconds.
"""

_NO_FILE = (
    "Check the path, or let a sensor wait for the file before this task; with soft_fail=True the "
    "sensor skips a run whose file does not arrive"
)

_NO_ADDRESS = f"no object has this address. {_NO_FILE}"
_COMPARED = 1000
"""The error for a missing file offers a similar name in the directory. To find this name, at most
this many names are compared.
"""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Source files of one format, by absolute path or URI, in the order in which they are read."""

    format: SourceFormat
    paths: tuple[str, ...]
    options: Mapping[str, str] | None = field(default=None, repr=False)
    """Options of the storage of remote files."""
    dialect: TextDialect = CSV_AND_PLAIN

    mapping: ColumnMapping = BY_NAME
    """Names and types of columns that differ between the files and the table."""

    def columns(self, there: Collection[str] = ()) -> pa.Schema:
        """Return each column that at least one file has, with its name in the table; casts are not
        applied. ``there`` has the columns of the table, if it exists.
        """
        found = self._inferred(pa.schema([]))
        names = self.mapping.names(found.names, there)
        return pa.schema([each.with_name(name) for each, name in zip(found, names, strict=True)])

    def new_columns(self) -> pa.Schema | list[tuple[str, str]]:
        """Return the columns of a new table for the files, with casts applied."""
        found, casts = self.columns(), self.mapping.casts
        if not casts:
            return found
        from spark_jobs.cdc.evolve import column_list

        return column_list({**{c.name: type_of_column(c.name, c.type) for c in found}, **casts})

    def types_for(self, schema: TableSchema, *, widens: bool) -> Mapping[str, DataType]:
        """Return the types of the files' columns, by the names that they have in the table.

        CSV and JSON files declare no types. For them the result has only columns that ``schema``
        lacks and, with ``widens``, the types that the values of existing columns need.
        """
        mapping = self.mapping
        if self.format == "parquet":
            return {
                c.name: mapping.casts.get(c.name, type_of_column(c.name, c.type))
                for c in self.columns(schema.column_names)
            }
        known = mapping.readable(schema.arrow_schema())
        found = self._inferred(known) if self.dialect.header else pa.schema([])
        new = {mapping.name_of(each.name): type_of_column(each.name, each.type) for each in found}
        casts = {name: type for name, type in mapping.casts.items() if name in new or widens}
        needed = self._needed_types(schema, found) if widens else {}
        return {**new, **needed, **casts}

    def _inferred(self, known: pa.Schema) -> pa.Schema:
        from lakeformat.files.foreign.inferred_columns import infer_columns

        return infer_columns(
            self.paths,
            self.format,
            self.dialect,
            opener=partial(opener_of, options=self.options),
            known=known,
            to_cast=self.mapping.cast_sources,
        )

    def _needed_types(self, schema: TableSchema, new: pa.Schema) -> Mapping[str, DataType]:
        from lakeformat.files.foreign.rows import read_rows
        from spark_jobs.ingestion.needed_types import needed_types, readable_columns

        mapping = self.mapping
        fields = [field for field in schema.fields if field.name not in mapping.casts]
        wide = readable_columns(schema.arrow_schema(), fields)
        columns = pa.schema([*mapping.readable(wide), *new])
        batches = chain.from_iterable(
            read_rows(
                path, self.format, columns, self.dialect, opener=opener_of(path, self.options)
            )
            for path in self.paths
        )
        applied = partial(mapping.applied, there=schema.column_names)
        return needed_types(map(applied, batches), fields)

    def rows(
        self, schema: TableSchema, paths: Iterable[str], encoded: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files ``paths``. Rows of CSV and JSON files have the columns and
        types of ``schema``, those of Parquet files their own.

        The columns ``encoded`` may be dictionary arrays.
        """
        from lakeformat.paimon.write.checked_rows import checked_rows

        for path in paths:
            opener = opener_of(path, self.options)
            if self.format == "parquet":  # the writer checks the types of its values
                yield from self._parquet_rows(schema, path, encoded)
            else:
                yield from checked_rows(
                    path, self.format, schema, self.dialect, opener=opener, mapping=self.mapping
                )

    def _parquet_rows(
        self, schema: TableSchema, path: str, encoded: Collection[str]
    ) -> Iterator[pa.RecordBatch]:
        from lakeformat.files.foreign.rows import naming, read_rows

        opener, row = opener_of(path, self.options), 1
        encoded = encoded if self.mapping == BY_NAME else ()
        columns = schema.arrow_schema()
        for batch in read_rows(path, self.format, columns, opener=opener, encoded=encoded):
            with naming(path):
                mapped = self.mapping.applied(batch, row, schema.column_names)
            yield mapped
            row += batch.num_rows


def find_source(
    pattern: str,
    given: SourceFormat | None,
    paths: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    dialect: TextDialect = CSV_AND_PLAIN,
    mapping: ColumnMapping = BY_NAME,
) -> SourceFiles:
    """Return the files that match a path or glob, or the files ``paths``, with their format.

    If ``paths`` is given, ``pattern`` is only named in errors. ``given`` is the format of the
    request; if it is None, the suffixes decide. Raise ``NotFoundError`` if no file matches, and
    ``InvalidRequestError`` for several formats, or a dialect that does not fit the format.
    """
    paths = find_paths(pattern, options) if paths is None else paths
    formats = {given or format_of(path) for path in paths}
    if len(formats) > 1:
        raise lake.InvalidRequestError(
            f"source {pattern!r} matches files with the suffixes of several formats "
            f"({', '.join(sorted(formats))}): choose a pattern that matches one of them, or set "
            "'format' if all files have the same format"
        )
    [found] = formats
    for path in paths:
        dialect.require_fits(path, found)
        dialect.compression_of(path)
    if mapping.casts:
        from lakeformat.files.foreign.inferred_columns import with_shown_types

        opener = partial(opener_of, options=options)
        mapping = with_shown_types(mapping, paths, found, dialect, opener=opener)
    return SourceFiles(found, tuple(paths), options, dialect, mapping)


def find_paths(pattern: str, options: Mapping[str, str] | None = None) -> list[str]:
    """Return the files that match a path or glob, sorted.

    Files whose names begin with ``.`` or ``_``, such as ``_SUCCESS``, are ignored. ``**`` does not
    match directories with such names, for example Spark's ``_temporary``. But ``**`` matches the
    directories of partitions, for example ``_day=1``.

    Raise ``NotFoundError`` if no file matches, and ``InvalidRequestError`` for a local directory.
    """
    if is_remote(pattern):
        return _data([*remote_files(pattern, options)], pattern, _NO_ADDRESS)
    local = os.path.expanduser(re.sub(r"^file:(//)?(?=/)", "", pattern))
    if os.path.isdir(local):
        raise lake.InvalidRequestError(
            f"source {pattern!r} is a directory: write {pattern.rstrip('/')}/* for its files"
        )
    names = [local] if os.path.exists(local) else _matching(local)
    # A glob with two ``**`` returns a file more than once.
    files = sorted({os.path.abspath(name) for name in names if os.path.isfile(name)})
    return _data(files, pattern, _hint(local))


def _matching(pattern: str) -> list[str]:
    pattern = re.sub("(?<=[^/])/+", "/", pattern)  # as the paths of ``glob``
    return without_unfinished(glob.glob(pattern, recursive=True), pattern)


def find_states(pattern: str, options: Mapping[str, str] | None = None) -> dict[str, FileState]:
    """Return the size and version of each file that matches a path or glob.

    The keys of the result are the paths or URIs of the files.

    The version is an ETag or the time of the last change. A local file that is deleted during the
    call is left out. Raise the errors of ``find_paths``.
    """
    if is_remote(pattern):
        infos = remote_files(pattern, options)
        return {
            path: (infos[path].size, infos[path].etag or infos[path].modified_millis)
            for path in _data([*infos], pattern, _NO_ADDRESS)
        }
    states: dict[str, FileState] = {}
    for path in find_paths(pattern):
        with suppress(FileNotFoundError):  # moved away meanwhile
            found = os.stat(path)
            states[path] = (found.st_size, found.st_mtime_ns // 1_000_000)
    return states


def change_of(before: FileState, now: FileState) -> str:
    """Return the difference between two states of a file, such as ``from 7 to 9 bytes``."""
    if before[0] != now[0]:
        return f"from {before[0]:,} to {now[0]:,} bytes"
    return "its ETag" if isinstance(now[1], str) else "its time"


def _data(files: Sequence[str], pattern: str, hint: str) -> list[str]:
    paths = [path for path in files if not os.path.basename(path).startswith(IGNORED)]
    if files and not paths:
        hint = (
            f"files whose names begin with '.' or '_', such as {os.path.basename(files[0])!r}, are "
            f"ignored: rename such a file to ingest it. {_NO_FILE}"
        )
    if not paths:
        raise lake.NotFoundError(f"source {pattern!r} matches no file: {hint}")
    return paths


def _hint(local: str) -> str:
    """Return the reason why a local path or glob matches no file, and what to do."""
    parent = folder = os.path.dirname(os.path.abspath(local))
    while re.search(r"[*?\[]", folder):
        folder = os.path.dirname(folder)
    start = "" if os.path.isabs(local) else " (a relative path begins in the working directory)"
    if not os.path.isdir(folder):
        return f"the directory {folder} does not exist{start}. {_NO_FILE}"
    names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    near = closest(os.path.basename(local), names[:_COMPARED]) if folder == parent else ""
    held = counted(len(names), "file with another name", "files with other names")
    state = f"the directory {folder} has {held if names else 'no files'}{start}"
    return f"{state}{near or '.'} {_NO_FILE}"
