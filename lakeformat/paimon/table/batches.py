# SPDX-License-Identifier: Apache-2.0
"""Two uses of consumers, which keep the snapshots of a Paimon table from expiring.

``begin`` keeps the snapshots that a batch job reads (``table.begin()``). The log of stream batches,
in the directory ``stream/``, keeps those that a stream still needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.commit.earlier_result import find_commit
from lakeformat.paimon.consumers import TableConsumers
from lakeformat.paimon.expire.retention import is_decoupled
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.consumer import delete_consumer
from lakeformat.paimon.metadata.snapshot_directory import FIRST_SNAPSHOT_ID, latest_snapshot
from lakeformat.paimon.snapshot_positions import position_at
from lakeformat.tables.batch_log import StreamTable
from lakeformat.tables.position import Position

__all__ = ["begin", "stream_table"]


@contextmanager
def begin(handle: TableHandle) -> Iterator[Position]:
    """Yield the position of the newest snapshot; position 0 for a table without commits.

    This snapshot and all later ones are kept while the with block runs. Raise InvalidRequestError
    if consumers keep changelogs, but no snapshots (``consumer.changelog-only``).
    """
    if handle.options.consumer_changelog_only and is_decoupled(handle.options):
        raise InvalidRequestError(
            f"a batch on {handle.uri} cannot begin: the table option 'consumer.changelog-only' is "
            "'true', so consumers keep changelogs, but no snapshots. Set it to 'false', or make "
            "'snapshot.time-retained' longer than the batch and use table.position() instead of "
            "table.begin()"
        )
    name = f"batch-{handle.environment.new_id()}"
    head = latest_snapshot(handle.storage, handle.layout)
    number = 0 if head is None else head.id
    TableConsumers(handle).set(name, next_snapshot=max(number, FIRST_SNAPSHOT_ID))
    try:
        yield position_at(handle, number, None if head is None else head.identity)
    finally:
        delete_consumer(handle.storage, handle.layout, name)


def stream_table(handle: TableHandle) -> StreamTable:
    """Return the parts of the table that the log of batches needs: the directory, commits and
    consumers.
    """
    return StreamTable(
        handle.uri,
        handle.storage,
        handle.layout.stream_directory,
        handle.environment,
        partial(find_commit, handle),
        partial(_keep, handle),
        partial(delete_consumer, handle.storage, handle.layout),
    )


def _keep(handle: TableHandle, name: str) -> str | None:
    head = latest_snapshot(handle.storage, handle.layout)
    first = FIRST_SNAPSHOT_ID if head is None else head.id
    TableConsumers(handle).set(name, next_snapshot=first)
    return None if head is None else head.identity
