"""Consumers: readers of changes, how far each has come, and what is kept for them."""

from __future__ import annotations

from lakeformat.consumers.progress import Guard, Progress, read_progress
from lakeformat.consumers.report import ConsumerReport, ConsumerState
from lakeformat.consumers.stalled import StalledConsumer, find_stalled
from lakeformat.consumers.table_consumers import TableConsumers, expire_consumers

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
