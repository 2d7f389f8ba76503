# SPDX-License-Identifier: Apache-2.0
"""Consumers: ``consumer/consumer-<id>``, the progress of a reader of changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.environment import Environment
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.storage import Storage
from lakeformat.tables.consumers.files import ConsumerFiles
from lakeformat.tables.json_file import Member, read_members, write_members
from lakeformat.tables.position import Position

__all__ = [
    "Consumer",
    "consumer_files",
    "delete_consumer",
    "read_consumer",
    "read_consumers",
    "write_consumer",
]

_MEMBERS = (Member("nextSnapshot", "next_snapshot", int, required=True),)
_POSITION = "position"
"""The member with the text of ``Consumer.position``; only this library writes it."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """The progress of a reader of changes.

    ``next_snapshot`` is the snapshot that the reader reads next: the changes of this snapshot and
    of all later ones must not expire.
    """

    id: str
    next_snapshot: int
    position: Position | None = None
    """The position up to which the reader has read; None if only ``next_snapshot`` is known.

    It has the identity of its snapshot, but no branch. A rollback sets ``next_snapshot`` back and
    does not change the position. So the snapshot of the position may no longer exist.
    """

    def to_json(self) -> bytes:
        """Return the content of the consumer file."""
        members = write_members(_MEMBERS, self)
        if self.position is not None:
            members[_POSITION] = str(self.position)
        return json.dumps(members).encode()

    @classmethod
    def from_json(cls, consumer_id: str, members: Mapping[str, Any]) -> Consumer:
        """Return the consumer of a parsed consumer file; unknown members are ignored.

        Raise KeyError, TypeError, ValueError or InvalidRequestError for a damaged file.
        """
        kept = members.get(_POSITION)
        position = None if kept is None else Position.parse(kept)
        return cls(consumer_id, **read_members(_MEMBERS, members), position=position)


def consumer_files(storage: Storage, layout: TableLayout) -> ConsumerFiles:
    """Return the consumer files of a table, with the operations on them."""
    return ConsumerFiles(storage, layout.consumer_directory)


def read_consumers(
    storage: Storage, layout: TableLayout, environment: Environment
) -> list[Consumer]:
    """Return every consumer, sorted by id; a consumer that is deleted meanwhile is left out."""
    ids = consumer_files(storage, layout).ids()
    found = (read_consumer(storage, layout, consumer_id, environment) for consumer_id in ids)
    return [consumer for consumer in found if consumer is not None]


def read_consumer(
    storage: Storage, layout: TableLayout, consumer_id: str, environment: Environment
) -> Consumer | None:
    """Return a consumer; None if no consumer has this id.

    Raise CorruptTableError if its file is damaged.
    """
    return consumer_files(storage, layout).read(
        consumer_id,
        lambda found: Consumer.from_json(consumer_id, found),
        Remedy.CONSUMER,
        environment,
    )


def write_consumer(storage: Storage, layout: TableLayout, consumer: Consumer) -> None:
    """Write the file of a consumer; an existing file is replaced."""
    consumer_files(storage, layout).write(consumer.id, consumer.to_json())


def delete_consumer(storage: Storage, layout: TableLayout, consumer_id: str) -> None:
    """Delete the file of a consumer, so that no snapshot is kept for it any more."""
    consumer_files(storage, layout).delete(consumer_id)
