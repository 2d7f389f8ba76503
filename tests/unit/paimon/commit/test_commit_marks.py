"""Deletion marks survive every commit: no deleted row reappears."""

from __future__ import annotations

import pytest

import lakeformat as lake
from tests.paper import commit, file, head, live, message, paper_table, vectors

A, B = file("a"), file("b")


def mark(orders, name, *files, instead_of=(), **place):
    """Mark rows of files, in place of older index files."""
    return message(
        orders,
        new_index_files=[vectors(orders, name, *files, **place)],
        deleted_index_files=[vectors(orders, old, *files, **place) for old in instead_of],
        **place,
    )


def test_a_compaction_planned_before_rows_were_deleted_is_refused():
    orders = paper_table()
    commit(orders, message(orders, A))
    commit(orders, mark(orders, "v1", "a"), user="deleter")
    late = message(orders, compact_before=[A], compact_after=[B])
    with pytest.raises(lake.CommitConflictError, match=r"deletes a without having read .* v1"):
        commit(orders, late)
    assert live(orders) == ["a"]


def test_one_that_has_read_the_marks_takes_them_out_with_the_file():
    orders = paper_table()
    commit(orders, message(orders, A))
    commit(orders, mark(orders, "v1", "a"))
    read = message(
        orders,
        compact_before=[A],
        compact_after=[B],
        compact_deleted_index_files=[vectors(orders, "v1", "a")],
    )
    commit(orders, read)
    assert (live(orders), head(orders).index_manifest) == (["b"], None)


def test_copying_rows_into_a_new_file_needs_the_marks_too():
    orders = paper_table()
    commit(orders, message(orders, A))
    commit(orders, mark(orders, "v1", "a"))
    with pytest.raises(lake.CommitConflictError, match="deletes a without having read"):
        commit(orders, message(orders, B, deleted_files=[A]))


def test_in_a_bucket_marks_of_other_files_are_not_dropped():
    orders = paper_table(options={"bucket": "2", "bucket-key": "id"})
    commit(orders, message(orders, A, B))
    commit(orders, mark(orders, "v1", "a"))
    commit(orders, mark(orders, "v2", "a", "b", instead_of=["v1"]))
    stale = message(
        orders,
        compact_before=[A],
        compact_after=[file("c")],
        compact_deleted_index_files=[vectors(orders, "v1", "a")],
    )
    with pytest.raises(lake.CommitConflictError, match="v1, which do not exist any more"):
        commit(orders, stale)


def test_a_keyed_table_with_dynamic_buckets_has_one_file_of_marks_per_bucket():
    orders = paper_table(keyed=True, options={"bucket": "-1"})
    commit(orders, message(orders, A))
    commit(orders, mark(orders, "v1", "a"))
    with pytest.raises(lake.CommitConflictError, match="v1 without having read them"):
        commit(orders, mark(orders, "v2", "a"))


def test_with_a_primary_key_compacted_files_leave_their_marks_behind_as_in_java():
    orders = paper_table(keyed=True)
    commit(orders, message(orders, A))
    commit(orders, mark(orders, "v1", "a"))
    commit(orders, message(orders, compact_before=[A], compact_after=[file("m", level=5)]))
    assert live(orders) == ["m@5"]
    assert head(orders).index_manifest is not None
