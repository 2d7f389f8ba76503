# SPDX-License-Identifier: Apache-2.0
"""The LogStore of a Mixed table: a topic of a message queue to which Flink writes each change, too.

Only Amoro's writer for Flink writes messages. Changes of other programs, such as this library, are
in the table, but readers of the topic never see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakeformat.errors import UnsupportedError
from lakeformat.mixed.stores.store_pair import LoadedPair

__all__ = ["OF_LOG_STORE", "refuse_log_store", "require_no_log_store"]

OF_LOG_STORE = "log-store."
"""The beginning of the names of all properties of a LogStore."""
_ENABLED = ("log-store.enabled", "log-store.enable")
"""The property that turns the LogStore on, and its earlier name; default: false."""


def require_no_log_store(pair: LoadedPair) -> None:
    """Raise ``UnsupportedError`` if the table has a LogStore.

    Readers of its topic would miss the changes that this library writes.
    """
    for store in (pair.base, pair.change):
        for name in _ENABLED:
            if _is_true(store.metadata.properties.get(name)):
                table = pair.base.places
                topic = store.metadata.properties.get("log-store.topic", "")
                raise UnsupportedError(
                    f"{table.uri} has a LogStore: its property {name!r} is true, and its topic is "
                    f"{topic!r}. This library writes no messages to the topic, so its readers "
                    "would miss the changes. Nothing was written: write the table with Flink and "
                    "Amoro, or turn the LogStore off after its readers have stopped: "
                    f"`lake set-option {table.argument} {name}=false`. Reading, optimizing and "
                    "expiry are possible with a LogStore"
                )


def refuse_log_store(properties: Mapping[str, str | None]) -> None:
    """Raise ``UnsupportedError`` if new properties of a table describe a LogStore.

    A LogStore may be turned off, and its properties may be removed.
    """
    if refused := [*_described(properties)]:
        raise UnsupportedError(
            f"the property {refused[0]!r} describes a LogStore, a message queue beside a Mixed "
            "table. This library writes no messages, so readers of the queue would miss changes: "
            "remove the property, and read streams of changes with table.stream(), or create the "
            "table with Flink and Amoro"
        )


def _described(properties: Mapping[str, str | None]) -> Iterable[str]:
    for name, value in properties.items():
        is_off = name in _ENABLED and not _is_true(value)
        if name.startswith(OF_LOG_STORE) and value is not None and not is_off:
            yield name


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() == "true"
