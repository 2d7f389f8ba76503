"""The cost of a look for references: many tags have most manifests in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import lakeformat as lake
from lakeformat.errors import CorruptTableError
from lakeformat.paimon.metadata.manifest_list import ManifestMeta
from lakeformat.paimon.orphans import references
from lakeformat.paimon.orphans.references import find_references
from tests.counting import CountingStorage
from tests.keyed_rows import KeyedRows


def tagged(tags: int, *, expired: bool) -> lake.Table:
    rows = KeyedRows(keyed=False)
    for number in range(tags):
        rows.commit(("+I", number, "x"))
        rows.table.tags.create(f"t{number}")
    if expired:
        rows.table.expire_snapshots(retain_max=1, retain_min=1)
    return rows.table


def reads_of_manifests(table: lake.Table) -> Counter[str]:
    storage = CountingStorage(table._handle.storage)
    find_references(replace(table._handle, storage=storage))
    return Counter(
        path
        for _, path in storage.calls
        if "/manifest/manifest-" in path and "/manifest-list-" not in path
    )


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("tags", [4, 12])
def test_each_manifest_is_read_once_however_many_tags_name_it(tags, expired):
    found = reads_of_manifests(tagged(tags, expired=expired))
    assert (len(found), found.total()) == (tags, tags)


def test_the_references_are_the_same_if_no_manifest_is_kept(monkeypatch: pytest.MonkeyPatch):
    table = tagged(6, expired=True)
    names = find_references(table._handle).names
    monkeypatch.setattr(references, "_MOST_ENTRIES", 0)
    assert reads_of_manifests(table).total() > 6
    assert np.array_equal(find_references(table._handle).names._merged(), names._merged())


def test_a_list_that_counts_other_files_is_damage_although_the_manifest_is_known(
    monkeypatch: pytest.MonkeyPatch,
):
    table = tagged(4, expired=True)
    read = references.read_manifest_list
    lists: list[str] = []

    def damaged(storage, layout, name, *, size):
        found: list[ManifestMeta] = read(storage, layout, name, size=size)
        lists.append(name)
        last = len(lists) == 2 * 4 + 2  # of the newest snapshot and of four tags
        return [replace(each, num_added_files=9) if last else each for each in found]

    monkeypatch.setattr(references, "read_manifest_list", damaged)
    with pytest.raises(CorruptTableError, match="records 9 and 0"):
        find_references(table._handle)
