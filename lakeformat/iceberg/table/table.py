# SPDX-License-Identifier: Apache-2.0
"""The public class of an Iceberg table, and the function that opens a table in a directory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lakeformat.environment import SYSTEM, Environment
from lakeformat.iceberg.commit.directory_pointer import DirectoryPointer
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.commit.pointer import FixedPointer, MetadataPointer
from lakeformat.iceberg.metadata.partition_terms import partition_terms
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.refused_arguments import REFUSED_ARGUMENTS
from lakeformat.iceberg.schema import Schema
from lakeformat.iceberg.table.checks import TableChecks
from lakeformat.iceberg.table.expiry import TableExpiry
from lakeformat.iceberg.table.orphans import TableOrphans
from lakeformat.iceberg.table.reads import TableReads
from lakeformat.iceberg.table.references import TableReferences
from lakeformat.iceberg.table.row_changes import TableRowChanges
from lakeformat.iceberg.table.upkeep import TableUpkeep
from lakeformat.iceberg.table.writes import TableWrites
from lakeformat.storage import NO_ROOTS, ExternalRoots, Storage
from lakeformat.tables.position import MAIN_BRANCH

if TYPE_CHECKING:
    from lakeformat.iceberg.table.system_table import IcebergSystemTable
    from lakeformat.tables.wanted_table import WantedTable

__all__ = ["IcebergTable", "load_iceberg_table"]

_INSTEAD: Final[Mapping[str, str]] = {
    "changelog": "it has no changelog files; table.changes(position) reads its changes",
    "end_batch": "its commits hold no lease, so there is nothing to release",
    "expire_partitions": "drop_partitions([...]) deletes the partitions that you name",
    "ingest_changes": "in a Python function, read source.changes(…) and write the rows with "
    "target.write",
    "mark_partitions_done": "when all rows are written, tag the snapshot with "
    "table.tags.create(name)",
    "partition_marks": "leave out 'done' to wait for rows, or let the writer tag a snapshot",
    "plan_optimizing": "plan_compaction() shows what a compaction would do",
    "publish": "readers of Iceberg read it in place, so nothing needs to be published",
    "rescale": "its buckets are partitions; run ALTER TABLE … REPLACE PARTITION FIELD in Spark",
    "snapshot_change": "the system table 'entries' has the files of a snapshot",
    "watermarks": "wait for a snapshot, or check the age of the newest time in a column",
    "touched_partitions": "leave out partition_column, and read table.changes(position)",
}


def load_iceberg_table(
    storage: Storage,
    root: str,
    external_roots: ExternalRoots = NO_ROOTS,
    branch: str = MAIN_BRANCH,
    metadata_file: str | None = None,
    environment: Environment = SYSTEM,
) -> IcebergTable:
    """Open the table in a directory, with its newest metadata file or with the given one.

    With ``metadata_file`` the table is read-only. Raise ``NotFoundError`` if the table or the
    branch does not exist, and ``InvalidRequestError`` if the table was moved or copied.
    """
    pointer: MetadataPointer = DirectoryPointer(storage, root, external_roots, environment)
    if metadata_file is not None:
        pointer = FixedPointer(storage, root, external_roots, metadata_file)
    table = IcebergTable(TableHandle(pointer, branch, environment))
    table.snapshots()
    return table


class IcebergTable(
    TableReads,
    TableWrites,
    TableRowChanges,
    TableChecks,
    TableUpkeep,
    TableExpiry,
    TableOrphans,
    TableReferences,
):
    """One branch of an Iceberg table.

    Each call reads the newest metadata file, or the one with which the table was opened.
    """

    format = "iceberg"
    numbers_snapshots = False
    instead = MappingProxyType(_INSTEAD)
    refused_arguments = MappingProxyType({**REFUSED_ARGUMENTS})

    def __repr__(self) -> str:
        return f"<IcebergTable {self.location}>"

    @property
    def schema(self) -> Schema:
        """The current columns."""
        return self._loaded().metadata.schema

    @property
    def schema_id(self) -> int:
        """The id of the current schema."""
        return self.schema.schema_id

    @property
    def key_columns(self) -> list[str]:
        """The names of the identifier fields; empty if there are none."""
        schema = self.schema
        names = map(schema.name_of, schema.identifier_field_ids)
        return [name for name in names if name is not None]

    @property
    def why_changes_delete(self) -> str:
        """The reason why changes of the table may delete rows, as a clause for messages."""
        return "is an Iceberg table, whose commits may delete rows"

    def contradictions(self, wanted: WantedTable) -> list[str]:
        """Return one text for each difference between this table and ``wanted``; empty if none."""
        from lakeformat.iceberg.create.contradictions import contradictions

        return contradictions(self._loaded().metadata, self.key_columns, wanted)

    @property
    def format_version(self) -> int:
        """The version of the format: 1, 2 or 3."""
        return self._loaded().metadata.format_version

    @property
    def partition_by(self) -> list[str]:
        """The columns and transforms, such as ``day(event_time)``, by which new files are
        partitioned.
        """
        return partition_terms(self._loaded().metadata)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties that are set."""
        return self._loaded().metadata.properties

    @property
    def references(self) -> Mapping[str, Reference]:
        """The branches and tags by name."""
        return self._loaded().metadata.references

    def system_table(self, name: str) -> IcebergSystemTable:
        """Return a system table: metadata as rows, such as ``"files"``.

        Raise ``InvalidRequestError``, with the nearest name, for an unknown name.
        """
        from lakeformat.iceberg.system_tables.registry import find_system_table
        from lakeformat.iceberg.table.system_table import IcebergSystemTable

        declared = find_system_table(name)
        return IcebergSystemTable(declared, self._loaded, self._handle.branch, dir(type(self)))

    @property
    def system_tables(self) -> list[str]:
        """The names of the system tables."""
        from lakeformat.iceberg.system_tables.registry import SYSTEM_TABLES

        return [*SYSTEM_TABLES]
