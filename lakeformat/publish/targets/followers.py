# SPDX-License-Identifier: Apache-2.0
"""The entries of one table in catalogs, which follow its published metadata."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.environment import Environment
from lakeformat.errors import InvalidRequestError, LakeError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.paimon.handle import TableHandle
from lakeformat.publish.targets.entry import CatalogEntry, Targets, is_ours
from lakeformat.publish.targets.follow import OTHER_NAME, follow
from lakeformat.publish.targets.wanted import wanted_catalogs
from lakeformat.publish.versions import PublishedVersions

__all__ = ["Followers", "ReadersLag", "entries_of", "entry_lag", "targets_of"]


class Followers:
    """Moves every entry of a table to the newest metadata, and records the names of moved
    entries.

    ``table`` names the table in the command that an error advises.
    """

    def __init__(
        self,
        entries: tuple[CatalogEntry, ...],
        versions: PublishedVersions,
        environment: Environment,
        table: str,
    ) -> None:
        self._entries = entries
        self._versions = versions
        self._environment = environment
        self._table = table
        self._moved: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the entries that ``show`` created or moved."""
        return tuple(self._moved)

    def show(self) -> None:
        """Point every catalog to the newest metadata.

        If some catalogs fail, raise the first ``LakeError`` after all catalogs were tried.
        """
        failures = []
        for entry in self._entries:
            try:
                if follow(entry, self._versions, self._environment, self._table):
                    self._moved[entry.name] = None
            except LakeError as failure:
                failures.append(failure)
        if failures:
            raise failures[0]


def targets_of(handle: TableHandle) -> Targets | None:
    """Return the catalogs that the connection of an opened table can reach; None without a
    connection.
    """
    found: Targets | None = getattr(handle.observer, "targets", None)
    return found


def entries_of(handle: TableHandle, targets: Targets | None) -> tuple[CatalogEntry, ...]:
    """Return the entries that the options of a table ask for.

    Raise ``InvalidRequestError`` if there are such entries, but ``targets`` is None.
    """
    if targets is not None:
        return targets.entries(handle)
    if wanted_catalogs(handle):
        raise InvalidRequestError(
            f"{handle.uri} is published in a catalog, but was opened without a connection to a "
            "catalog: open it with open_table or a catalog"
        )
    return ()


@dataclass(frozen=True, slots=True)
class ReadersLag:
    """The difference between the state that readers of Iceberg see and the newest state."""

    finding: str
    """The difference as a clause."""
    shown: int = 0
    """The number of the newest snapshot that readers see; 0 if they see none, or if unknown."""
    advice: str | None = None
    """The remedy if publishing the table again would fail; None if the remedy is `lake publish`."""


def entry_lag(entry: CatalogEntry, newest: LoadedMetadata) -> ReadersLag | None:
    """Return the difference between a catalog and the newest metadata; None if there is none."""
    try:
        named = entry.find()
        if named is None:
            return ReadersLag(
                f"{entry.name} does not exist yet, so readers of the catalog do not find it"
            )
        if not is_ours(named, newest):
            finding = f"{entry.name} is another table, with the metadata {named.address}"
            return ReadersLag(finding, advice=OTHER_NAME)
        if entry.shows(named, newest):
            return None
    except LakeError as reason:
        return ReadersLag(f"{entry.name} could not be checked: {reason}")
    shown = None if named.metadata is None else named.metadata.current_snapshot_id
    return ReadersLag(
        f"{entry.name} shows an earlier state, with the metadata {named.address}", shown or 0
    )
