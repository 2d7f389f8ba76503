# SPDX-License-Identifier: Apache-2.0
"""The directories and file names of a table.

<warehouse>/<database>.db/<table>/
  schema/schema-<n>
  snapshot/snapshot-<n>   EARLIEST   LATEST
  changelog/changelog-<n>   EARLIEST   LATEST
  tag/tag-<name>   tag/tag-success-file/<name>_SUCCESS   consumer/consumer-<id>
  staged/staged-<name>   staged/claim-<name>.<id>   staged/discard-<name>.<id>
  stream/stream-<name>   run/run-<user>
  branch/branch-<name>/   the metadata directories above, for a branch
  manifest/manifest-<uuid>-<n>   manifest-list-<uuid>-<n>   index-manifest-<uuid>-<n>
  statistics/stat-<uuid>-<n>   index/index-<uuid>-<n>
  [<key>=<value>/…]bucket-<n>/data-<uuid>-<n>.<format>   bucket-postpone/…

Manifests, statistics, index and data files of all branches lie below the table. Options can
put data files into a directory below the table or into external directories, and index files beside
data files.
The prefixes ``.fence-``, ``.expire-``, ``.unfinished-`` and ``.deleted-`` are defined below. A name
that only one operation uses is in the module of the operation, such as ``.cloning``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from lakeformat.errors import CorruptTableError
from lakeformat.files.changelog_packs import packed_part
from lakeformat.files.file_format import FileFormat, file_extension
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.kinds import POSTPONE_BUCKET
from lakeformat.tables.position import MAIN_BRANCH

__all__ = [
    "DATABASE_SUFFIX",
    "DOTS",
    "EXPIRY_INTENT",
    "MAIN_BRANCH",
    "REGISTERED_MARK",
    "UNFINISHED_BRANCH",
    "DataFileNames",
    "TableLayout",
    "data_file_name",
    "database_directory",
    "expiry_intent_name",
    "index_file_name",
    "index_manifest_name",
    "manifest_list_name",
    "manifest_name",
    "numbered",
    "partition_directory",
    "plain_name",
    "statistics_name",
]

DATABASE_SUFFIX = ".db"
DOTS = frozenset({".", ".."})
"""Directory names with a special meaning; a file, branch, tag or consumer cannot have these
names.
"""

UNFINISHED_BRANCH = ".unfinished-"
"""Prefix of the file that marks a branch under creation, renaming or deletion."""

EXPIRY_INTENT = ".expire-"
"""Prefix of the file that lists the snapshots that an expiry is deleting."""

FENCE = ".fence-"
"""Prefix of the file that lists the snapshots that a rollback removed.

No writer builds on these snapshots.
"""

REGISTERED_MARK = "_registered_in_lake_table"
"""Name of a file in a directory of plain files that were added to a table in place.

The file contains the URI of the table.
"""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")


def database_directory(warehouse: str, database: str) -> str:
    """Return ``<warehouse>/<database>.db``."""
    return f"{warehouse}/{database}{DATABASE_SUFFIX}"


def manifest_name(unique: str, counter: int) -> str:
    """Return the name of a data manifest; ``unique`` is a uuid, ``counter`` starts at 0."""
    return f"manifest-{unique}-{counter}"


def manifest_list_name(unique: str, counter: int) -> str:
    """Return the name of a manifest list; ``unique`` is a uuid, ``counter`` starts at 0."""
    return f"manifest-list-{unique}-{counter}"


def index_manifest_name(unique: str, counter: int) -> str:
    """Return the name of an index manifest; ``unique`` is a uuid, ``counter`` starts at 0."""
    return f"index-manifest-{unique}-{counter}"


def index_file_name(unique: str, counter: int) -> str:
    """Return the name of a file of key hashes or deletion vectors; ``unique`` is a uuid."""
    return f"index-{unique}-{counter}"


def statistics_name(unique: str, counter: int) -> str:
    """Return the name of a statistics file; ``unique`` is a uuid, ``counter`` starts at 0."""
    return f"stat-{unique}-{counter}"


def expiry_intent_name(end: int, unique: str) -> str:
    """Return the name of an intent: the file that lists the snapshots below ``end`` that an expiry
    deletes.
    """
    return f"{EXPIRY_INTENT}{end}-{unique}"


class DataFileNames:
    """The names of new data and changelog files of one writer; ``unique`` is its uuid."""

    def __init__(self, options: TableOptions, unique: str) -> None:
        self._options = options
        self._unique = unique
        self._numbers = count()

    def next_data(self) -> str:
        """Return the name of the next data file."""
        return self._next(self._options.data_file_prefix, self._options)

    def next_of_level(self, level: int) -> str:
        """Return the name of the next data file of a level of a primary-key table."""
        return self._next(self._options.data_file_prefix, self._options.of_level(level))

    def next_changelog(self, level: int = 0) -> str:
        """Return the name of the next changelog file for changes of data files of ``level``."""
        return self._next(self._options.changelog_file_prefix, self._options.of_changelog(level))

    def _next(self, prefix: str, options: TableOptions) -> str:
        extension = file_extension(
            FileFormat(options.file_format),
            options.file_compression,
            include_compression=options.file_suffix_include_compression,
        )
        return data_file_name(prefix, self._unique, next(self._numbers), extension)


def data_file_name(prefix: str, unique: str, counter: int, extension: str) -> str:
    """Return a data file's name; ``unique`` is the uuid of its writer, ``counter`` starts at 0."""
    return f"{prefix}{unique}-{counter}.{extension}"


def numbered(name: str, prefix: str) -> int | None:
    """Return the number in ``<prefix><number>``; None for a name of any other form."""
    rest = name.removeprefix(prefix)
    return int(rest) if rest != name and _NUMBER.fullmatch(rest) else None


def partition_directory(values: Sequence[tuple[str, str]]) -> str:
    """Return the directory of a partition below the table, such as ``dt=2024-01-31/h=1``.

    ``values`` are keys with their values as text; null and blank values are already replaced by the
    table's default name. Readers never take values from a directory name, because null and blank
    values share a directory.
    """
    return "/".join(f"{_escaped(key)}={_escaped(value)}" for key, value in values)


def plain_name(name: str) -> str:
    """Return a file name from metadata unchanged.

    Raise CorruptTableError for a name that would lead to another directory, such as ``../x``.
    """
    if not name or name in DOTS or "/" in name or "\0" in name:
        raise CorruptTableError(
            f"the table's metadata names a file {name!r}, which is not a valid file name; "
            "restore the metadata file from a backup or roll back to an earlier snapshot"
        )
    return name


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The paths of all files of one table and one of its branches."""

    root: str
    branch: str = MAIN_BRANCH
    data_path: str = ""
    """The directory of data files below the root, from option ``data-file.path-directory``."""

    def on_branch(self, branch: str) -> TableLayout:
        """Return the layout of the same table for another branch."""
        return replace(self, branch=branch)

    @property
    def metadata_root(self) -> str:
        """The directory of schemas, snapshots and tags of the branch."""
        if self.branch == MAIN_BRANCH:
            return self.root
        return f"{self.branches_directory}/branch-{plain_name(self.branch)}"

    @property
    def branches_directory(self) -> str:
        return f"{self.root}/branch"

    @property
    def schema_directory(self) -> str:
        return f"{self.metadata_root}/schema"

    @property
    def snapshot_directory(self) -> str:
        return f"{self.metadata_root}/snapshot"

    @property
    def changelog_directory(self) -> str:
        return f"{self.metadata_root}/changelog"

    @property
    def tag_directory(self) -> str:
        return f"{self.metadata_root}/tag"

    @property
    def consumer_directory(self) -> str:
        return f"{self.metadata_root}/consumer"

    @property
    def staged_directory(self) -> str:
        return f"{self.metadata_root}/staged"

    @property
    def stream_directory(self) -> str:
        return f"{self.metadata_root}/stream"

    @property
    def run_directory(self) -> str:
        return f"{self.metadata_root}/run"

    @property
    def latest_hint(self) -> str:
        return f"{self.snapshot_directory}/LATEST"

    @property
    def earliest_hint(self) -> str:
        return f"{self.snapshot_directory}/EARLIEST"

    def schema(self, schema_id: int) -> str:
        return f"{self.schema_directory}/schema-{schema_id}"

    def snapshot(self, snapshot_id: int) -> str:
        return f"{self.snapshot_directory}/snapshot-{snapshot_id}"

    def fence(self, unique: str) -> str:
        """Return the path of the list of snapshots that one rollback removed."""
        return f"{self.snapshot_directory}/{FENCE}{unique}"

    def changelog(self, snapshot_id: int) -> str:
        """Return the path of an expired snapshot that is kept for its changelog."""
        return f"{self.changelog_directory}/changelog-{snapshot_id}"

    def tag(self, name: str) -> str:
        return f"{self.tag_directory}/tag-{plain_name(name)}"

    def tag_success_file(self, name: str) -> str:
        """Return the path of the file that signals a tag to other programs."""
        return f"{self.tag_directory}/tag-success-file/{plain_name(name)}_SUCCESS"

    def deleted_tag(self, name: str) -> str:
        """Return the path to which a deleted tag is moved until its data files are deleted."""
        return f"{self.tag_directory}/.deleted-{plain_name(name)}"

    def unfinished_branch(self, name: str) -> str:
        """Return the path of the file that hides a branch during creation, renaming or deletion."""
        return f"{self.branches_directory}/{UNFINISHED_BRANCH}{plain_name(name)}"

    def stream(self, name: str) -> str:
        """Return the path of the file with a stream's last batch; other engines ignore it."""
        return f"{self.stream_directory}/stream-{plain_name(name)}"

    def manifest(self, name: str) -> str:
        """Return the path of a manifest, manifest list or index manifest."""
        return f"{self.root}/manifest/{plain_name(name)}"

    def statistics(self, name: str) -> str:
        """Return the path of a statistics file."""
        return f"{self.root}/statistics/{plain_name(name)}"

    def index_file(self, name: str) -> str:
        """Return the path of a file of key hashes, deletion vectors or a global index."""
        return f"{self.root}/index/{plain_name(name)}"

    def bucket_directory(self, bucket: int, partition: str = "") -> str:
        """Return the path of a bucket's directory.

        ``partition`` is a result of ``partition_directory``; it is empty for a table without
        partitions.
        """
        below = self.bucket_below_root(bucket, partition)
        return f"{self.root}/{below}" if self.root else below

    def bucket_below_root(self, bucket: int, partition: str = "") -> str:
        """Return the path of a bucket's directory relative to the table or to an external path."""
        name = "postpone" if bucket == POSTPONE_BUCKET else str(bucket)
        parts = (self.data_path, partition, f"bucket-{name}")
        return "/".join(part for part in parts if part)

    def first_below_root(self, names: Sequence[str]) -> Sequence[str]:
        """Return the first segments of ``names``, the path of a bucket below an external path.

        The result ends with the first partition directory. In a table without partitions, it ends
        with the directory of the bucket.
        """
        return names[: len(self.data_path.split("/")) * bool(self.data_path) + 1]

    def data_file(self, bucket: int, name: str, partition: str = "") -> str:
        """Return the path of a file in a bucket.

        For a changelog that Flink packed with changelogs of other buckets, return the path of the
        packed file.
        """
        if (part := packed_part(name)) is not None:
            bucket, name = part.bucket, part.file_name
        return f"{self.bucket_directory(bucket, partition)}/{plain_name(name)}"
