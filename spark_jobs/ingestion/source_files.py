"""Finds the files of a request and their format."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

import lakeformat as lake
from lakeformat.files.foreign.dialect import CSV_AND_PLAIN, SourceFormat, TextDialect, format_of
from spark_jobs.ingestion.remote_files import is_remote, opener_of, remote_paths

if TYPE_CHECKING:
    from lakeformat import TableSchema
    from lakeformat.types.types import DataType

__all__ = ["SourceFiles", "find_paths", "find_source"]

_NO_FILE = "check the path, or let a sensor wait for the file before this task"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of one format, by absolute path or address, in the order they are read."""

    format: SourceFormat
    paths: tuple[str, ...]
    options: Mapping[str, str] | None = field(default=None, repr=False)
    """Options of the storage of remote files."""
    dialect: TextDialect = CSV_AND_PLAIN

    def columns(self) -> pa.Schema:
        """Return the columns of all files together, for a table that does not exist yet."""
        from lakeformat.files.foreign.inferred_columns import infer_columns

        opener = partial(opener_of, options=self.options)
        return infer_columns(self.paths, self.format, self.dialect, opener=opener)

    def types_for(self, schema: TableSchema, *, widens: bool) -> Mapping[str, DataType]:
        """Return the types of columns that the table may lack; with ``widens`` also the types that
        values of its own columns need.
        """
        from lakeformat.files.foreign.inferred_columns import infer_columns
        from lakeformat.types.arrow_types import from_arrow_type

        if self.format == "parquet":
            return {field.name: from_arrow_type(field.type) for field in self.columns()}
        known, found = schema.arrow_schema(), pa.schema([])
        if self.dialect.header:
            opener = partial(opener_of, options=self.options)
            found = infer_columns(self.paths, self.format, self.dialect, opener=opener, known=known)
        new = {field.name: from_arrow_type(field.type) for field in found}
        return {**new, **self._needed_types(schema, found)} if widens else new

    def _needed_types(self, schema: TableSchema, new: pa.Schema) -> Mapping[str, DataType]:
        from lakeformat.files.foreign.rows import read_rows
        from spark_jobs.ingestion.needed_types import needed_types, readable_columns

        columns = readable_columns(schema.arrow_schema(), schema.fields)
        columns = pa.schema([*columns, *new])
        batches = chain.from_iterable(
            read_rows(
                path,
                self.format,
                columns,
                self.dialect,
                opener=opener_of(path, self.options),
            )
            for path in self.paths
        )
        return needed_types(batches, schema.fields)

    def rows(
        self, schema: TableSchema, paths: Iterable[str], encoded: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some of the files; rows of text files get the columns of a table.

        Columns ``encoded`` may be dictionary arrays.
        """
        from lakeformat.files.foreign.rows import read_rows
        from lakeformat.paimon.write.checked_rows import checked_rows

        columns = schema.arrow_schema()
        for path in paths:
            opener = opener_of(path, self.options)
            if self.format == "parquet":  # the writer checks the types of its values
                yield from read_rows(path, self.format, columns, opener=opener, encoded=encoded)
            else:
                yield from checked_rows(path, self.format, schema, self.dialect, opener=opener)


def find_source(
    pattern: str,
    given: SourceFormat | None,
    paths: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    dialect: TextDialect = CSV_AND_PLAIN,
) -> SourceFiles:
    """Return the files of a path or glob, or only the given files, with their format."""
    paths = find_paths(pattern, options) if paths is None else paths
    formats = {given or format_of(path) for path in paths}
    if len(formats) > 1:
        raise lake.InvalidRequestError(
            f"source {pattern!r} matches files of several formats ({', '.join(sorted(formats))}): "
            "choose a pattern that matches one format"
        )
    [found] = formats
    for path in paths:
        dialect.require_fits(path, found)
        dialect.compression_of(path)
    return SourceFiles(found, tuple(paths), options, dialect)


def find_paths(pattern: str, options: Mapping[str, str] | None = None) -> list[str]:
    """Return the files of a path or glob; hidden files and marks such as ``_SUCCESS`` are
    ignored.
    """
    if is_remote(pattern):
        return _data(remote_paths(pattern, options), pattern, _NO_FILE)
    local = os.path.expanduser(re.sub(r"^file:(//)?(?=/)", "", pattern))
    names = [local] if os.path.exists(local) else glob.glob(local, recursive=True)
    files = sorted(os.path.abspath(name) for name in names if os.path.isfile(name))
    return _data(files, pattern, _hint(local))


def _data(files: Sequence[str], pattern: str, hint: str) -> list[str]:
    paths = [path for path in files if not os.path.basename(path).startswith((".", "_"))]
    if not paths:
        raise lake.NotFoundError(f"source {pattern!r} matches no file: {hint}")
    return paths


def _hint(local: str) -> str:
    return f"it is a directory, write {local.rstrip('/')}/*" if os.path.isdir(local) else _NO_FILE
