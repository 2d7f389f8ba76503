"""Every directory and file name on storage, and nothing else.

<warehouse>/<database>.db/<table>/
  schema/schema-<n>
  snapshot/snapshot-<n>   EARLIEST   LATEST
  manifest/manifest-<uuid>-<n>   manifest-list-<uuid>-<n>
  bucket-<n>/data-<uuid>-<n>.<format>
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "DATABASE_SUFFIX",
    "TableLayout",
    "data_file_name",
    "database_directory",
    "manifest_list_name",
    "manifest_name",
    "numbered",
    "table_directory",
]

DATABASE_SUFFIX = ".db"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


def database_directory(warehouse: str, database: str) -> str:
    """Where a database keeps its tables."""
    return f"{warehouse}/{database}{DATABASE_SUFFIX}"


def table_directory(warehouse: str, database: str, table: str) -> str:
    """The root of a table."""
    return f"{database_directory(warehouse, database)}/{table}"


def manifest_name(unique: str, counter: int) -> str:
    """A data manifest of one commit attempt."""
    return f"manifest-{unique}-{counter}"


def manifest_list_name(unique: str, counter: int) -> str:
    """A manifest list of one commit attempt."""
    return f"manifest-list-{unique}-{counter}"


def data_file_name(prefix: str, unique: str, counter: int, extension: str) -> str:
    """A data file; ``unique`` belongs to one writer, ``counter`` starts at 0."""
    return f"{prefix}{unique}-{counter}.{extension}"


def numbered(name: str, prefix: str) -> int | None:
    """The number of ``<prefix><number>``; None for temporary files and other strangers."""
    rest = name.removeprefix(prefix)
    return int(rest) if rest != name and _NUMBER.fullmatch(rest) else None


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The paths of one table."""

    root: str

    @property
    def schema_directory(self) -> str:
        return f"{self.root}/schema"

    @property
    def snapshot_directory(self) -> str:
        return f"{self.root}/snapshot"

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

    def manifest(self, name: str) -> str:
        """A manifest or a manifest list; both live in one directory."""
        return f"{self.root}/manifest/{name}"

    def bucket_directory(self, bucket: int) -> str:
        """Where the data files of a bucket of an unpartitioned table are."""
        return f"{self.root}/bucket-{bucket}"

    def data_file(self, bucket: int, name: str) -> str:
        return f"{self.bucket_directory(bucket)}/{name}"
