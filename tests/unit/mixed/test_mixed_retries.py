"""A retry knows if its first attempt has published, also if an expiry ran in between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lakeformat as lake
from tests.unit.mixed.aged_table import HOUR, AgedTable


def test_a_retry_after_an_expiry_is_decided_by_the_head_of_its_first_attempt(tmp_path: Path):
    """The head has the ids of both stores; its base snapshot itself may have expired."""
    aged = AgedTable(tmp_path)
    aged.write((1, "x", "a"), (2, "x", "a"))
    aged.merge()
    aged.now += 24 * HOUR
    head = aged.table.latest_snapshot()
    assert head is not None
    began = lake.CommitId("run", 1, first_try_millis=aged.now, first_try_head=head.identity)
    aged.write((3, "x", "stream"))
    aged.merge()
    old = "12h"
    aged.table.expire_snapshots(older_than=old)
    assert head.id not in [each.id for each in aged.table.snapshots()]
    with pytest.raises(lake.CommitUndecidableError, match=r"Mixed table 'change\.data\.ttl\.min"):
        aged.table.delete("k = 1", commit=replace(began, first_try_head=None))
    assert not aged.table.delete("k = 1", commit=began).replayed
    assert aged.table.delete("k = 1", commit=began).replayed
    assert aged.rows() == [(2, "x", "a"), (3, "x", "stream")]
