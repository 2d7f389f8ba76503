# SPDX-License-Identifier: Apache-2.0
"""Consumers: readers of changes, their progress, and the snapshots kept for them."""

from __future__ import annotations

from lakeformat.paimon.consumers.progress import Guard, Progress, read_progress
from lakeformat.paimon.consumers.stalled import StalledConsumer, find_stalled
from lakeformat.paimon.consumers.table_consumers import TableConsumers, expire_consumers
from lakeformat.tables.consumers.report import ConsumerReport, ConsumerState

__all__ = [
    "ConsumerReport",
    "ConsumerState",
    "Guard",
    "Progress",
    "StalledConsumer",
    "TableConsumers",
    "expire_consumers",
    "find_stalled",
    "read_progress",
]
