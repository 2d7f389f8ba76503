# SPDX-License-Identifier: Apache-2.0
"""Finds storage and path of data and index files: in the table, or in an allowed directory.

A file outside of a table is used only if all of this holds:

- its address ends with ``[data-path/][partition/]bucket-<n>/<file name>``, as Paimon writes it.
  Partition, bucket and file name are those of the manifest entry. The directories of
  ``entropy-inject`` may precede the name. In an append table without buckets, the address may
  instead end with ``[<key>=<value>/…]<file name>``, as in a migrated directory;
- the option ``data-file.external-paths`` lists the address without this ending. The option is read
  from the handle or from the branch's newest schema;
- the caller allows it with ``external-roots``;
- it is not in the directory of another table.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote

from lakeformat.errors import InvalidRequestError
from lakeformat.files.changelog_packs import packed_address, packed_part
from lakeformat.paimon.datafile.entropy import entropy_directories
from lakeformat.paimon.handle import TableHandle, is_unaware
from lakeformat.paimon.layout import DOTS, plain_name
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.index_manifest import IndexManifestEntry
from lakeformat.paimon.metadata.referrer import naming
from lakeformat.paimon.metadata.schema_file import latest_schema_id, read_schema
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.partition import partition_path
from lakeformat.storage import Storage
from lakeformat.storage.location import Location, location_of

__all__ = ["beside", "data_file_place", "external_place", "index_file_place"]

_OPTION = TableOptions.data_file_external_paths


def data_file_place(
    handle: TableHandle, bucket: int, file: DataFileMeta, directory: str
) -> tuple[Storage, str]:
    """Return storage and path of a data file.

    ``directory`` is the directory of its partition relative to the table, such as
    ``dt=2024-01-31``. Raise InvalidRequestError for an external path that breaks a rule in this
    module's docstring.
    """
    if file.external_path is None:
        return handle.storage, handle.layout.data_file(bucket, file.file_name, directory)
    storage, path = external_place(handle, file.external_path, bucket, file.file_name, directory)
    return storage, packed_address(path)


def beside(
    handle: TableHandle, bucket: int, file: DataFileMeta, directory: str, name: str
) -> tuple[Storage, str]:
    """Return storage and path of the file ``name`` in the directory of the data file ``file``.

    The arguments and errors are those of ``data_file_place``.
    """
    if file.external_path is None:
        return handle.storage, handle.layout.data_file(bucket, name, directory)
    storage, path = data_file_place(handle, bucket, file, directory)
    return storage, f"{path.rpartition('/')[0]}/{plain_name(name)}"


def index_file_place(handle: TableHandle, entry: IndexManifestEntry) -> tuple[Storage, str]:
    """Return storage and path of an index file.

    Raise InvalidRequestError for an external path that breaks a rule in this module's docstring.
    """
    if entry.external_path is None and not handle.options.index_file_in_data_file_dir:
        return handle.storage, handle.layout.index_file(entry.file_name)
    with naming(f"_PARTITION of index file {entry.file_name}"):
        directory = partition_path(handle.schema, entry.partition)
    if entry.external_path is None:
        return handle.storage, handle.layout.data_file(entry.bucket, entry.file_name, directory)
    return external_place(handle, entry.external_path, entry.bucket, entry.file_name, directory)


def external_place(
    handle: TableHandle, address: str, bucket: int, name: str, directory: str
) -> tuple[Storage, str]:
    """Return storage and path of a file outside of the table, after all checks.

    ``directory`` is the directory of the file's partition, relative to the table. Raise
    InvalidRequestError if ``address`` breaks one of the rules in this module's docstring.
    """
    in_bucket = handle.layout.bucket_below_root(bucket, directory).split("/")
    is_plain = f"/{in_bucket[-1]}/" not in address  # the file of a migrated directory
    found = handle.external_roots.require(address, handle.uri, len(in_bucket) + (not is_plain))
    root = _root_of(handle, address, found, (*in_bucket, plain_name(name)))
    if not _is_named(handle, root):
        raise InvalidRequestError(
            f"{handle.uri} names the external path {address}, but the option {_OPTION.key!r} of "
            f"the newest schema does not list the directory {root}. A file outside of the table is "
            "read or deleted only if both this option and external-roots allow it. If the path is "
            f"right, add {root} to {_OPTION.key!r}"
        )
    first = handle.layout.first_below_root(found.segments[len(root.segments) : -1])
    handle.external_roots.require_no_table(str(root), handle.storage, handle.uri, first)
    return handle.external_roots.place(address, handle.storage, handle.uri)


def _root_of(
    handle: TableHandle, address: str, found: Location, expected: tuple[str, ...]
) -> Location:
    """Return the directory that ``data-file.external-paths`` should name for the address ``found``.

    ``expected`` are the partition, bucket and file name with which the address must end, in one of
    the forms of this module's docstring. Raise InvalidRequestError if it ends in another way.
    """
    if not any(segment in DOTS for segment in address.split("/")):
        spread = (*expected[:-1], *entropy_directories(expected[-1]).split("/"), expected[-1])
        for form in (expected, spread):
            if found.segments[-len(form) :] == form:
                return found.above(len(form))
        if (depth := _plain_depth(handle, found, expected[-1])) is not None:
            return found.above(depth)
    raise InvalidRequestError(
        f"{handle.uri} names the external path {address} for file {expected[-1]}, but the address "
        f"should end with {'/'.join(expected)}. The manifest is damaged or forged: restore it from "
        "a backup, or roll back to an earlier snapshot"
    )


def _plain_depth(handle: TableHandle, found: Location, name: str) -> int | None:
    """Return the number of path segments of a file below the migrated directory.

    There is one for each partition key, and one for the file name. Return None if the address does
    not have the form of a migrated file.
    """
    keys = handle.schema.partition_keys
    if len(found.segments) <= len(keys) or not is_unaware(handle) or packed_part(name):
        return None
    *above, last = found.segments[-len(keys) - 1 :]
    there = [unquote(segment.partition("=")[0]) for segment in above if "=" in segment]
    return len(keys) + 1 if last == name and there == [*keys] else None


def _is_named(handle: TableHandle, root: Location) -> bool:
    """Return True if ``data-file.external-paths`` of handle or newest schema has ``root``."""
    known = handle.external_paths
    if root in _named(handle.options.text(_OPTION) if known is None else known):
        return True
    newest = latest_schema_id(handle.storage, handle.layout)
    if newest is None or newest == handle.schema.id:
        return False
    options = read_schema(handle.storage, handle.layout, newest).table_options
    return root in _named(options.text(_OPTION))


@lru_cache(maxsize=64)
def _named(text: str) -> frozenset[Location]:
    return frozenset(location_of(address) for address in _OPTION.parse(text))
