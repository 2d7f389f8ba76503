# SPDX-License-Identifier: Apache-2.0
"""Compares metadata to check if later commits kept the changes of an earlier commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.table_metadata import TableMetadata
from lakeformat.tables.position import MAIN_BRANCH

__all__ = ["has_changes"]

_DERIVED = frozenset(
    {
        "current-snapshot-id",
        "last-column-id",
        "last-partition-id",
        "last-sequence-number",
        "last-updated-ms",
        "metadata-log",
        "next-row-id",
    }
)
"""Members that are not compared: later commits change them too, or they follow from other members.
"""


def has_changes(current: TableMetadata, published: TableMetadata, base: TableMetadata) -> bool:
    """Return True if ``current`` has all that ``published`` changed relative to ``base``.

    If another commit changed the same members again, the result is False. For moves of the branch
    ``main``, the snapshot log is compared: most later commits move the branch again, but the log
    also has the earlier moves.
    """
    now, new, old = (dict(_parts(each)) for each in (current, published, base))
    added = {key: value for key, value in new.items() if old.get(key) != value}
    removed = {key: value for key, value in old.items() if key not in new}
    return all(now.get(key) == value for key, value in added.items()) and not any(
        now.get(key) == value for key, value in removed.items()
    )


def _parts(metadata: TableMetadata) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield a key and a value for each part of the JSON of a metadata file.

    Each element of a list, each member of an inner object, and each other value is one part. The
    members in ``_DERIVED`` are left out.
    """
    for member, value in metadata_to_json(metadata).items():
        if member in _DERIVED:
            continue
        if isinstance(value, list):
            yield from (((member, json.dumps(each, sort_keys=True)), True) for each in value)
        elif not isinstance(value, dict):
            yield (member, ""), value
        else:
            for key, each in value.items():
                is_main = (member, key) == ("refs", MAIN_BRANCH)
                yield (member, key), {**each, "snapshot-id": None} if is_main else each
