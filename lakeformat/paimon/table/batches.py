# SPDX-License-Identifier: Apache-2.0
"""The log of stream batches of a Paimon table, which is stored in ``stream/``.

A consumer keeps the snapshots that a stream still needs.
"""

from __future__ import annotations

from functools import partial

from lakeformat.paimon.commit.earlier_result import find_commit
from lakeformat.paimon.consumers import TableConsumers
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.consumer import delete_consumer
from lakeformat.paimon.metadata.snapshot_directory import FIRST_SNAPSHOT_ID, latest_snapshot
from lakeformat.tables.batch_log import StreamTable

__all__ = ["stream_table"]


def stream_table(handle: TableHandle) -> StreamTable:
    """Return the table as the log of batches needs it: its directory, earlier commits and
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
