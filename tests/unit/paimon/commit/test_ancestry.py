"""Ancestry: a snapshot whose predecessor has expired is recognised by its manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

import lakeformat as lake
from lakeformat.paimon.commit.ancestry import is_built_on
from lakeformat.paimon.commit.snapshot_delta import SnapshotDelta


def test_two_snapshots_without_an_index_manifest_are_not_proved_to_be_related(tmp_path):
    """A commit that removes the last index file leaves a snapshot without an index manifest."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", [("id", "BIGINT")])
    for value in (1, 2):
        orders.write(pa.table({"id": [value]}))
    first, second = orders.snapshots()
    assert second.index_manifest is None
    # Another program's snapshot 1, which is not the one of the table.
    foreign = replace(first, delta_manifest_list="manifest-list-of-another-history")
    removed: Any = object()
    changes = SnapshotDelta(index_removed=(removed,))
    assert not is_built_on(orders._handle, 2, foreign, changes)
