# SPDX-License-Identifier: Apache-2.0
"""``$consumers``: readers of changes and their progress."""

from __future__ import annotations

from lakeformat.paimon.metadata.consumer import Consumer, read_consumers
from lakeformat.paimon.system_tables.declaration import column, declare
from lakeformat.paimon.system_tables.source import Source

__all__ = ["CONSUMERS"]


def _consumers(source: Source) -> list[Consumer]:
    handle = source.handle
    return read_consumers(handle.storage, handle.layout, handle.environment)


CONSUMERS = declare(
    "consumers",
    _consumers,
    [
        column("consumer_id", "STRING NOT NULL", "id"),
        column("next_snapshot_id", "BIGINT NOT NULL", "next_snapshot"),
    ],
)
