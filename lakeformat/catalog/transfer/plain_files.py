# SPDX-License-Identifier: Apache-2.0
"""Finds the data files of a plain directory, as Hive and Spark write it.

A directory ``key=value`` has the rows with this value in column ``key``. Names that begin with a
dot or an underscore are ignored, as in Hive: they are marks, logs and unfinished files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.orc as orc

from lakeformat.catalog.table_format import SIGNS_OF_ANOTHER_KIND, sign_of_another_kind
from lakeformat.catalog.transfer.ownership import MARK, parents
from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.files.file_format import FileFormat, format_of
from lakeformat.files.parquet.sound_footer import require_sound_footer
from lakeformat.files.parquet.sound_statistics import SoundStatistics, read_footer
from lakeformat.storage import Storage
from lakeformat.storage.base import FileInfo
from lakeformat.types.sentence import sentence

__all__ = ["MigratedFile", "PlainDirectory", "find_plain_files"]

_OF_A_TABLE = "schema/schema-0"
_SIGNS_BEGIN = {path.partition("/")[0] for path in (_OF_A_TABLE, *SIGNS_OF_ANOTHER_KIND)}
_MAGIC = {b"PAR1": FileFormat.PARQUET, b"ORC": FileFormat.ORC}
_LONGEST_MAGIC = 4


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """A plain file, its partition values, and the columns and row count in its footer."""

    info: FileInfo
    uri: str
    values: tuple[str, ...]
    """The partition values in the order of the partition columns, as text from the names of the
    directories.
    """
    format: FileFormat
    names_format: bool
    """True if the suffix of the file's name belongs to its format."""
    schema: pa.Schema
    rows: int
    statistics: SoundStatistics | None
    """The statistics in the footer of a Parquet file; None for an ORC file."""


@dataclass(frozen=True, slots=True)
class PlainDirectory:
    """The data files below a directory, and their partition columns."""

    files: tuple[MigratedFile, ...]
    keys: tuple[str, ...]
    """The partition columns, from the outermost directory to the innermost."""
    skipped: tuple[str, ...]
    marks: tuple[str, ...] = ()
    """The paths of the mark files below the directory. A mark file names the table that owns the
    files in its directory.
    """


def find_plain_files(storage: Storage, root: str) -> PlainDirectory:
    """Return all Parquet and ORC files below a directory, with their partitions.

    ``InvalidRequestError`` is raised if a table is in the directory, below or above it. The same
    error is raised for files with different partition columns, and if there is no data file.
    ``NotFoundError`` is raised for a missing directory, and ``UnsupportedError`` for a file of
    another format.
    """
    if not storage.directory_exists(root):
        raise NotFoundError(f"{storage.uri(root)} is not a directory: check the address")
    for directory in (root, *parents(root)):
        _refuse_table(storage, root, directory)
    skipped: list[str] = []
    marks: list[str] = []
    found = [*_walk(storage, root, root, (), skipped, marks)]
    if not found:
        raise InvalidRequestError(
            f"{storage.uri(root)} has no Parquet or ORC file: check the address"
        )
    keys = tuple(key for key, _ in found[0][1])
    for info, partition in found:
        if (other := tuple(key for key, _ in partition)) != keys:
            raise InvalidRequestError(
                f"the partition columns of {storage.uri(info.path)} are "
                f"{', '.join(other) or 'none'}, but those of {storage.uri(found[0][0].path)} are "
                f"{', '.join(keys) or 'none'}: all files need the same partition columns. "
                "Move one of these two files, or migrate the directories one by one"
            )
    files = tuple(
        _opened(storage, info, tuple(value for _, value in partition)) for info, partition in found
    )
    return PlainDirectory(files, keys, tuple(skipped), tuple(marks))


def _refuse_table(storage: Storage, root: str, directory: str) -> None:
    if (sign := _sign_of_table(storage, directory)) is None:
        return
    place = storage.uri(directory)
    where = (
        f"lies in {place}, which is" if directory in parents(root) else f"holds {place}, which is"
    )
    raise InvalidRequestError(
        f"{storage.uri(root)} {'is' if directory == root else where} a table already ({sign}), "
        "not a directory of plain files: a table deletes files that it no longer needs, and some "
        "of its files hold outdated rows. Copy a Paimon table with `lake clone`; read the rows of "
        "a table of another format, and write them into a new table"
    )


def _sign_of_table(storage: Storage, directory: str) -> str | None:
    if storage.exists(f"{directory}/{_OF_A_TABLE}"):
        return _OF_A_TABLE
    return sign_of_another_kind(storage, directory)


def _walk(
    storage: Storage,
    root: str,
    directory: str,
    partition: tuple[tuple[str, str], ...],
    skipped: list[str],
    marks: list[str],
) -> Iterator[tuple[FileInfo, tuple[tuple[str, str], ...]]]:
    listed = [*storage.list(directory)]
    if directory != root and not _SIGNS_BEGIN.isdisjoint(info.name for info in listed):
        _refuse_table(storage, root, directory)
    for info in listed:
        if info.name == MARK:
            marks.append(info.path)
        elif info.name.startswith((".", "_")):
            skipped.append(storage.uri(info.path))
        elif info.is_directory:
            key, equals, value = info.name.partition("=")
            inside = ((*partition, (unquote(key), unquote(value))),) if equals else (partition,)
            yield from _walk(storage, root, info.path, inside[0], skipped, marks)
        else:
            yield info, partition


def _opened(storage: Storage, info: FileInfo, values: tuple[str, ...]) -> MigratedFile:
    uri = storage.uri(info.path)
    try:
        with storage.open_input(info.path) as stream:
            head = stream.read(_LONGEST_MAGIC)
            found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
            if found is None:
                raise UnsupportedError(
                    f"{uri} is neither Parquet nor ORC: move it out of the directory, or convert "
                    "it; `lake write` reads CSV and JSON"
                )
            stream.seek(0)
            statistics = None
            if found is FileFormat.PARQUET:
                footer, stored = read_footer(stream)
                require_sound_footer(footer, info.size)
                statistics = SoundStatistics(footer, stored)
                statistics.require()
                schema, rows = footer.schema.to_arrow_schema(), footer.num_rows
            else:
                file = orc.ORCFile(stream)
                schema, rows = file.schema, file.nrows
    except (pa.ArrowException, OSError) as reason:
        raise InvalidRequestError(
            f"{uri} cannot be read: {sentence(reason)} Restore it, or move it out of the directory"
        ) from reason
    return MigratedFile(
        info=info,
        uri=uri,
        values=values,
        format=found,
        names_format=_names(info.name, uri, found),
        schema=pa.schema([_plain(field) for field in schema]),
        rows=rows,
        statistics=statistics,
    )


def _names(name: str, uri: str, found: FileFormat) -> bool:
    try:
        return format_of(name, uri) is found
    except UnsupportedError:
        return False


def _plain(field: pa.Field) -> pa.Field:
    """Return the column as nullable, and not as dictionary, large string or large binary.

    The metadata of the column, such as its field id, is kept. Footers do not guarantee NOT NULL,
    and tables have none of these three types.
    """
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind):
        kind = pa.string()
    elif pa.types.is_large_binary(kind):
        kind = pa.binary()
    return pa.field(field.name, kind, nullable=True, metadata=field.metadata)
