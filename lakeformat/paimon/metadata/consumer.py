# SPDX-License-Identifier: Apache-2.0
"""Consumers: ``consumer/consumer-<id>``, the progress of a reader of changes.

The file is overwritten in place, so a reader may find it empty or half written. It reads the file
again before it reports damage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, NotFoundError
from lakeformat.paimon.layout import TableLayout, suffixed
from lakeformat.paimon.metadata.remedy import Remedy
from lakeformat.storage import Storage
from lakeformat.tables.file_name_part import check_file_name_part
from lakeformat.tables.json_file import Member, decode_json_file, read_members, write_members

__all__ = [
    "Consumer",
    "consumer_ids",
    "delete_consumer",
    "read_consumer",
    "read_consumers",
    "write_consumer",
]

TRIES = 10
PAUSE_SECONDS = 0.2

_MEMBERS = (Member("nextSnapshot", "next_snapshot", int, required=True),)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader of changes; the snapshot it reads next, and all after it, must not expire."""

    id: str
    next_snapshot: int

    def to_json(self) -> bytes:
        """Return the content of the consumer file."""
        return json.dumps(write_members(_MEMBERS, self)).encode()

    @classmethod
    def from_json(cls, consumer_id: str, members: Mapping[str, Any]) -> Consumer:
        """Read the members of a consumer file; unknown ones are ignored."""
        return cls(consumer_id, **read_members(_MEMBERS, members))


def consumer_ids(storage: Storage, layout: TableLayout) -> list[str]:
    """Return the ids of all consumers, sorted."""
    files = (info.name for info in storage.list(layout.consumer_directory) if not info.is_directory)
    return sorted(name for name in (suffixed(f, "consumer-") for f in files) if name is not None)


def read_consumers(
    storage: Storage, layout: TableLayout, environment: Environment
) -> list[Consumer]:
    """Return every consumer, sorted by id, without those deleted meanwhile."""
    ids = consumer_ids(storage, layout)
    found = (read_consumer(storage, layout, consumer_id, environment) for consumer_id in ids)
    return [consumer for consumer in found if consumer is not None]


def read_consumer(
    storage: Storage, layout: TableLayout, consumer_id: str, environment: Environment
) -> Consumer | None:
    """Return a consumer; None if no consumer has this id."""
    path = layout.consumer(_checked(consumer_id))
    for remaining in reversed(range(TRIES)):
        try:
            content = storage.read(path)
        except NotFoundError:
            return None
        try:
            return decode_json_file(
                content,
                storage.uri(path),
                lambda found: Consumer.from_json(consumer_id, found),
                Remedy.CONSUMER,
            )
        except CorruptTableError as reason:
            if not remaining:
                raise CorruptTableError(
                    f"{reason}. The file was damaged in each of {TRIES} reads, so this is not a "
                    "write in progress"
                ) from None
        environment.sleep_seconds(PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")


def write_consumer(storage: Storage, layout: TableLayout, consumer: Consumer) -> None:
    """Write the progress of a consumer."""
    storage.overwrite(layout.consumer(_checked(consumer.id)), consumer.to_json())


def delete_consumer(storage: Storage, layout: TableLayout, consumer_id: str) -> None:
    """Delete a consumer: snapshots are no longer kept for it."""
    storage.delete(layout.consumer(_checked(consumer_id)))


def _checked(consumer_id: str) -> str:
    check_file_name_part("consumer id", consumer_id)
    return consumer_id
