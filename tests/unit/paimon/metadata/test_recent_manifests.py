"""The results of the last manifests are kept, up to a number of entries."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.paimon.metadata.manifest_list import ManifestMeta
from lakeformat.paimon.metadata.recent_manifests import _OVERHEAD, RecentManifests
from lakeformat.paimon.metadata.simple_stats import EMPTY_STATS

ENTRIES = 100


def manifest(name: str, entries: int = ENTRIES) -> ManifestMeta:
    return ManifestMeta(
        file_name=name,
        file_size=1,
        num_added_files=entries,
        num_deleted_files=0,
        partition_stats=EMPTY_STATS,
        schema_id=0,
    )


class Reader:
    """Reads manifests, and remembers which ones."""

    def __init__(self, fitting: int) -> None:
        self.recent = RecentManifests[str](fitting * (ENTRIES + _OVERHEAD))
        self.read: list[str] = []

    def _read(self, manifests) -> list[str]:
        self.read += [each.file_name for each in manifests]
        return [each.file_name.upper() for each in manifests]

    def unread(self, *manifests: ManifestMeta) -> list[str]:
        """Return the manifests that a look reads, and check its results."""
        self.read = []
        found = [*self.recent.each(manifests, self._read)]
        assert found == [each.file_name.upper() for each in manifests]
        return self.read


def test_results_keep_the_order_of_the_manifests():
    reader = Reader(3)
    a, b, c = map(manifest, "abc")
    assert reader.unread(b) == ["b"]
    assert reader.unread(a, b, c) == ["a", "c"]
    assert reader.unread(c, a, a, b) == []


def test_those_that_were_not_used_for_the_longest_time_are_dropped():
    reader = Reader(2)
    a, b, c = map(manifest, "abc")
    reader.unread(a, b)
    assert reader.unread(a) == []
    assert reader.unread(c) == ["c"]
    assert reader.unread(a) == []
    assert reader.unread(b) == ["b"]


def test_a_manifest_that_does_not_fit_drops_no_other():
    reader = Reader(1)
    a, large = manifest("a"), manifest("large", 2 * ENTRIES)
    assert reader.unread(a, large) == ["a", "large"]
    assert reader.unread(a, large) == ["large"]


def test_a_manifest_of_which_a_list_counts_other_files_is_read_again():
    reader = Reader(3)
    a = manifest("a")
    reader.unread(a)
    assert reader.unread(replace(a, num_deleted_files=1)) == ["a"]
    assert reader.unread(replace(a, file_size=2)) == ["a"]
