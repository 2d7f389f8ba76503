"""A commit's index changes lead from one state of the index manifest to the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeformat.errors import CommitConflictError, CorruptTableError, InvalidRequestError
from lakeformat.files.vector_record import DeletionVectorRange
from lakeformat.paimon.index.combination import VectorFiles, combine
from lakeformat.paimon.metadata.index_manifest import (
    DELETION_VECTORS,
    HASH,
    GlobalIndexMeta,
    IndexManifestEntry,
)
from lakeformat.paimon.metadata.manifest import FileKind
from lakeformat.paimon.metadata.simple_stats import EMPTY_ROW

HASHES = IndexManifestEntry(
    partition=EMPTY_ROW,
    bucket=1,
    index_type=HASH,
    file_name="index-u-0",
    file_size=12,
    row_count=3,
)


def vectors(name: str, *data_files: str, bucket: int = 0) -> IndexManifestEntry:
    ranges = tuple(DeletionVectorRange(data_file, 1, 24, 2) for data_file in data_files)
    return replace(
        HASHES, index_type=DELETION_VECTORS, file_name=name, bucket=bucket, ranges=ranges
    )


def covering(
    name: str, first: int, last: int, *, field: int = 4, extra=None, source=None, kind="btree"
) -> IndexManifestEntry:
    meta = GlobalIndexMeta(first, last, field, extra, None, source)
    return replace(HASHES, file_name=name, index_type=kind, global_index=meta)


VECTORS = vectors("v", "data-u-0.parquet", bucket=1)
GLOBAL = covering("g", 0, 99)


def test_untouched_entries_are_carried_over_unchanged_and_in_order():
    other = replace(HASHES, partition=b"p")
    new = replace(HASHES, bucket=7, file_name="new")
    assert combine([GLOBAL, other, VECTORS], added=[new]) == [GLOBAL, other, VECTORS, new]


def test_an_added_file_replaces_the_one_of_its_bucket_and_type():
    new = replace(HASHES, file_name="new")
    elsewhere = replace(HASHES, bucket=2)
    state = [HASHES, VECTORS, elsewhere]
    assert combine(state, added=[new]) == [VECTORS, elsewhere, new]


def test_a_file_removed_and_added_for_one_bucket_is_the_added_one():
    new = replace(VECTORS, file_name="new")
    assert combine([VECTORS], removed=[VECTORS], added=[new]) == [new]


def test_removing_what_a_bucket_does_not_have_changes_nothing():
    assert combine([VECTORS], removed=[HASHES]) == [VECTORS]


def test_two_files_for_one_bucket_in_one_commit_are_refused():
    with pytest.raises(InvalidRequestError, match=r"2 HASH files .*index-u-0, other.*abort"):
        combine([], added=[HASHES, replace(HASHES, file_name="other")])


def test_only_the_files_of_the_bucket_with_several_are_named():
    elsewhere = replace(HASHES, file_name="alone", bucket=HASHES.bucket + 1)
    with pytest.raises(InvalidRequestError, match=r"2 HASH files .*\(index-u-0, other\)"):
        combine([], added=[elsewhere, HASHES, replace(HASHES, file_name="other")])


def test_a_table_without_buckets_has_any_number_of_vector_files():
    state, new = [vectors("a", "f1"), vectors("b", "f2")], vectors("c", "f3", "f4")
    assert combine(state, added=[new], vector_files=VectorFiles.ANY_NUMBER) == [*state, new]


def test_a_vector_moves_to_another_file_when_its_old_file_goes():
    old, kept, new = vectors("a", "f1"), vectors("b", "f2"), vectors("c", "f1", "f3")
    state = combine([old, kept], removed=[old], added=[new], vector_files=VectorFiles.ANY_NUMBER)
    assert state == [kept, new]


@pytest.mark.parametrize(
    ("removed", "added", "reason"),
    [
        ([], [vectors("a", "f9")], "index file a: the snapshot, or another message of this"),
        ([], [vectors("b", "f1")], "cannot add b: the data file f1 already has a deletion vector"),
        ([], [vectors("b", "f2"), vectors("c", "f2")], "cannot add c: the data file f2"),
        ([vectors("z")], [], "index file z: the snapshot does not have it"),
        ([vectors("a", "f2")], [], "cannot remove a: the data file f2 has no deletion vector"),
    ],
)
def test_contradictions_between_vector_files_are_conflicts(removed, added, reason):
    state = [vectors("a", "f1")]
    with pytest.raises(CommitConflictError, match=reason):
        combine(state, removed=removed, added=added, vector_files=VectorFiles.ANY_NUMBER)


@pytest.mark.parametrize(
    "new",
    [
        covering("n", 100, 199),
        covering("n", 0, 99, field=5),
        covering("n", 0, 99, kind="bitmap"),
        replace(GLOBAL, file_name="n", global_index=None),
    ],
)
def test_a_global_index_of_other_rows_or_fields_is_added(new):
    old = covering("o", 0, 99)
    assert combine([old], added=[new]) == [old, new]


@pytest.mark.parametrize("new", [covering("n", 99, 120), covering("n", 500, 600, extra=(9,))])
def test_a_global_index_of_rows_that_are_covered_is_a_conflict(new):
    with pytest.raises(CommitConflictError, match="o covers rows of the same field"):
        combine([covering("o", 0, 99)], added=[new])


def test_a_global_index_replaces_one_that_is_removed_in_the_same_commit():
    old, new = covering("o", 0, 99), covering("n", 0, 150)
    assert combine([old], removed=[old], added=[new]) == [new]


def test_global_indexes_built_from_primary_key_sources_may_overlap():
    old, new = covering("o", 0, 99, source=b"pk"), covering("n", 0, 99, source=b"pk")
    assert combine([old], added=[new]) == [old, new]


@pytest.mark.parametrize("sources", [(b"DEIX\0", b"DEIX\0"), (b"DEIX\0", b"pk"), (None, b"pk")])
def test_global_indexes_built_from_scanned_snapshots_may_not(sources):
    old, new = (
        covering(name, 0, 99, source=source) for name, source in zip("on", sources, strict=True)
    )
    with pytest.raises(CommitConflictError):
        combine([old], added=[new])


def test_a_global_index_that_is_gone_cannot_be_removed():
    with pytest.raises(CommitConflictError, match="btree index file o"):
        combine([], removed=[covering("o", 0, 99)])


def test_a_state_that_deletes_is_damaged():
    with pytest.raises(CorruptTableError, match="deletes index-u-0"):
        combine([replace(HASHES, kind=FileKind.DELETE)])
