# SPDX-License-Identifier: Apache-2.0
"""Entries of published tables in REST catalogs, which write the metadata files themselves.

The first published file is registered. After that, only the changes to the entry are sent. The
service refuses them if another program has changed the entry meanwhile.

Updates of the REST protocol cannot express some changes, for example a snapshot id that was used
again. For such a change the newest file is registered, and replaces the entry. The service does not
check in this case whether another program has changed the entry.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace

from lakeformat.catalog.iceberg.rest import RestMetastore
from lakeformat.catalog.iceberg.rest_updates import commit_request
from lakeformat.catalog.names import TableName
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.publish.targets.entry import Named

__all__ = ["RestEntry"]


class RestEntry:
    """One table of a REST catalog."""

    def __init__(self, metastore: RestMetastore, name: TableName, address: str) -> None:
        self._metastore = metastore
        self._name = name
        self._address = address

    @property
    def name(self) -> str:
        """The name of the table and the address of its catalog, for messages."""
        return f"table '{self._name}' in {self._address}"

    def find(self) -> Named | None:
        """Return the current metadata of the table in the service; None if the table does not
        exist.
        """
        found = self._metastore.find_published(self._name)
        return None if found is None else Named(*found)

    def shows(self, named: Named, newest: LoadedMetadata) -> bool:
        """Return True if ``named``, the state in the service, has all changes of ``newest``."""
        assert named.metadata is not None
        if not _follows(named.metadata, newest.metadata):
            return False
        wanted = _with_their_properties(named.metadata, newest.metadata)
        return not commit_request(named.metadata, wanted)["updates"]

    def create(self, newest: LoadedMetadata) -> bool:
        """Register the newest metadata file, and create the database if it is missing.

        Return False if the table exists.
        """
        database = self._name.database
        if not self._metastore.has_database(database):
            self._metastore.make_database(database, {})
        return self._metastore.register(self._name, newest.metadata_file)

    def move(self, named: Named, newest: LoadedMetadata) -> bool | None:
        """Send the changes from ``named`` to ``newest``, and return True.

        Return False if another program has changed the entry. If updates of the REST protocol
        cannot express the changes, replace the entry by the metadata file of ``newest``, and return
        None. The service does not check then that the entry still had the state ``named``.
        """
        assert named.metadata is not None
        if _follows(named.metadata, newest.metadata):
            wanted = _with_their_properties(named.metadata, newest.metadata)
            return self._metastore.send_changes(self._name, named.metadata, wanted)
        if not self._metastore.register(self._name, newest.metadata_file, overwrite=True):
            self.remove()  # services of older specifications cannot replace a table
            if not self.create(newest):
                return False
        return None

    def remove(self) -> None:
        """Remove the table from the catalog; the service keeps the files."""
        self._metastore.remove_table(self._name, purge=False)


def _with_their_properties(there: TableMetadata, newest: TableMetadata) -> TableMetadata:
    """Return ``newest`` plus the properties that only ``there`` has.

    ``there`` is the metadata of the service.
    """
    return replace(newest, properties={**there.properties, **newest.properties})


def _follows(there: TableMetadata, newest: TableMetadata) -> bool:
    """Return True if updates of the REST protocol can lead from ``there`` to ``newest``."""
    known = {each.snapshot_id for each in there.snapshots}
    new = [each for each in newest.snapshots if each.snapshot_id not in known]
    return (
        there.location == newest.location
        and there.format_version <= newest.format_version
        and _agree(
            ((each.snapshot_id, each.manifest_list) for each in there.snapshots),
            ((each.snapshot_id, each.manifest_list) for each in newest.snapshots),
        )
        and _agree(
            ((each.schema_id, each.fields) for each in there.schemas),
            ((each.schema_id, each.fields) for each in newest.schemas),
        )
        and _agree(
            ((each.spec_id, each.fields) for each in there.partition_specs),
            ((each.spec_id, each.fields) for each in newest.partition_specs),
        )
        and all((each.sequence_number or 0) > there.last_sequence_number for each in new)
    )


def _agree(
    there: Iterable[tuple[Hashable, object]], newest: Iterable[tuple[Hashable, object]]
) -> bool:
    """Return True if each id that is in both lists has the same value in both."""
    known: Mapping[Hashable, object] = dict(there)
    return all(known.get(number, meant) == meant for number, meant in newest)
