# SPDX-License-Identifier: Apache-2.0
"""Finds the snapshot for a new tag or branch, from the arguments of the caller."""

from __future__ import annotations

from dataclasses import dataclass

from lakeformat.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lakeformat.iceberg.branch_history import history_of, no_snapshot
from lakeformat.iceberg.choice import snapshot_id_of
from lakeformat.iceberg.loaded_metadata import LoadedMetadata
from lakeformat.iceberg.metadata.snapshot import BRANCH, Reference, Snapshot
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.moment import Moment, moment_text, to_millis
from lakeformat.tables.position import AnyPosition
from lakeformat.types.closest import closest

__all__ = ["Origin", "find_reference", "unknown_reference"]


_SHOWN = 20
"""The largest number of names in a message."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The arguments that choose a snapshot. The default is the newest snapshot of ``branch``."""

    branch: str
    snapshot: AnyPosition | None = None
    tag: str | None = None
    at_or_after: Moment | None = None
    watermark: int | None = None

    def find(self, loaded: LoadedMetadata) -> Snapshot:
        """Return the chosen snapshot.

        Raise ``NotFoundError`` if it does not exist, and ``InvalidRequestError`` for more than one
        argument. Raise ``UnsupportedError`` for a watermark.
        """
        self._check()
        metadata, table = loaded.metadata, loaded.places.uri
        if self.tag is not None:
            reference = find_reference(metadata, self.tag, "tag", table)
            return _kept(metadata, reference.snapshot_id, table)
        history = history_of(metadata, self.branch, table)
        if self.snapshot is not None:
            return _kept(metadata, snapshot_id_of(loaded, history, self.snapshot), table)
        kept = [each.snapshot for each in history.snapshots]
        if not kept:
            raise NotFoundError(
                f"{table} has no snapshot yet to tag or branch from: write to it first"
            )
        if self.at_or_after is not None:
            return _first(kept, to_millis(self.at_or_after), table)
        return kept[-1]

    def _check(self) -> None:
        named = {"snapshot": self.snapshot, "tag": self.tag, "at_or_after": self.at_or_after}
        given = [f"{name}={value!r}" for name, value in named.items() if value is not None]
        if self.watermark is not None:
            raise UnsupportedError("Iceberg tables have no watermarks: pass at_or_after instead")
        if len(given) > 1:
            raise InvalidRequestError(
                f"pass only one of {', '.join(given)}: each chooses a snapshot"
            )


def find_reference(metadata: TableMetadata, name: str, kind: str, table: str) -> Reference:
    """Return a branch or tag of the ``kind``.

    Raise ``NotFoundError`` if it does not exist; the message suggests a similar name.
    """
    found = metadata.references.get(name)
    if found is not None and found.type == kind:
        return found
    names = sorted(each.name for each in metadata.references.values() if each.type == kind)
    plural = "branches" if kind == BRANCH else "tags"
    known = f"its {plural} are {', '.join(names)}" if names else f"it has no {plural}"
    raise NotFoundError(
        f"{table} has no {kind} {name!r}; {known}{closest(name, names)}"
        if found is None
        else f"{name!r} is a {found.type} of {table}, not a {kind}; {known}"
    )


def unknown_reference(metadata: TableMetadata, text: str, table: str) -> NotFoundError:
    """Return the error for a text that names no tag or branch, and is not a position."""
    names = sorted(metadata.references)
    shown = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
    known = f"its tags and branches are {shown}" if names else "it has no tags or branches"
    return NotFoundError(
        f"{table} has no tag or branch {text!r}, and this is not a position such as "
        f"str(table.position()); {known}{closest(text, names)}"
    )


def _first(kept: list[Snapshot], millis: int, table: str) -> Snapshot:
    for snapshot in kept:
        if snapshot.timestamp_ms >= millis:
            return snapshot
    raise NotFoundError(
        f"{table} has no snapshot from {moment_text(millis)} or later: choose an earlier time"
    )


def _kept(metadata: TableMetadata, snapshot_id: int, table: str) -> Snapshot:
    found = metadata.snapshot(snapshot_id)
    if found is None:
        raise no_snapshot(table, snapshot_id)
    return found
