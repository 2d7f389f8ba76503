# SPDX-License-Identifier: Apache-2.0
"""Explains that the partitions which a caller chose have no rows, and names existing partitions."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping

from lakeformat.paimon.compact.partition_choice import Chosen, chosen_partitions
from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.metadata.snapshot_directory import latest_snapshot
from lakeformat.paimon.partition import partition_name
from lakeformat.paimon.read.plan import plan_columns
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from lakeformat.types.count_text import counted

__all__ = ["explain_empty_choice"]


def explain_empty_choice(
    handle: TableHandle, where: Where | None, partitions: Partitions | None
) -> str | None:
    """Return a sentence about chosen partitions without rows; None if a chosen partition has rows.

    Also return None for an empty table, and if neither ``where`` nor ``partitions`` is given.
    """
    asked = [partitions] if isinstance(partitions, Mapping) else [*(partitions or ())]
    snapshot = latest_snapshot(handle.storage, handle.layout)
    if (where is None and not asked) or snapshot is None:
        return None
    there = {entry.partition for entry in plan_columns(handle, snapshot).entries()}
    choice = Chosen(where=where, partitions=partitions)
    if not there or chosen_partitions(handle.schema, choice)(there):
        return None
    names = sorted(partition_name(handle.schema, each) for each in there)
    if where is not None or len(asked) > 1:
        given = f"the {len(asked)} given partitions"
        text = where if where is None or isinstance(where, str) else where.to_text()
        meant = given if text is None else f"the condition {text!r}"
        return f"no rows match {meant}; {_all_of(names)}"
    keys = handle.schema.partition_keys
    name = "/".join(f"{key}={asked[0][key]}" for key in keys if key in asked[0])
    return f"partition {name} has no rows; {_nearest(name, names)}"


def _all_of(names: list[str]) -> str:
    if len(names) == 1:
        return f"the table has only {names[0]}"
    return f"the table has {counted(len(names), 'partition')}, {names[0]} to {names[-1]}"


def _nearest(name: str, names: list[str]) -> str:
    place = bisect(names, name)
    near = names[max(0, place - 1) : place + 1]
    return f"the nearest {'is' if len(near) == 1 else 'are'} {' and '.join(near)}"
