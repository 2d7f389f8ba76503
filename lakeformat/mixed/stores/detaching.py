# SPDX-License-Identifier: Apache-2.0
"""The mark of a change store whose table is being detached: no changes may follow."""

from __future__ import annotations

import shlex

from lakeformat.errors import CommitConflictError
from lakeformat.iceberg.loaded_metadata import LoadedMetadata

__all__ = ["DETACHING", "require_not_detaching"]

DETACHING = "lake.detaching"
"""The property of a change store with the name of the table that is being detached."""


def require_not_detaching(change: LoadedMetadata) -> None:
    """Raise ``CommitConflictError`` if the table is being detached: a change that is written now
    would be dropped with the change store.
    """
    if (table := change.metadata.properties.get(DETACHING)) is not None:
        name = shlex.quote(table) + change.places.warehouse_option
        raise CommitConflictError(
            f"table {table!r} takes no changes, because it is being detached from its change store "
            f"{change.metadata.location}. Nothing was written: open the table again after the "
            "detach, as an Iceberg table. If the detach was interrupted, repeat it: "
            f"detach_table({table!r}) or `lake --format iceberg detach {name}`"
        )
