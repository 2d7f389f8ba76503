"""Changes are applied by key: the rows are those of a dict that takes them one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.sampling import count
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.row_changes.changed_table import (
    COPY,
    MERGE,
    METHODS,
    changed_table,
    pairs_of,
)
from tests.unit.iceberg.write.made_tables import head_of, made_table, referenced_files, stored_files

INSERT, BEFORE, AFTER, DELETE = "+I", "-U", "+U", "-D"
CHANGES = st.lists(
    st.tuples(st.sampled_from([INSERT, BEFORE, AFTER, DELETE]), st.integers(0, 12)), max_size=12
)


def as_rows(changes: list[tuple[str, int, str | None]]) -> pa.Table:
    kinds, ids, texts = zip(*changes, strict=True) if changes else ((), (), ())
    columns = {"rowkind": kinds, "id": ids, "k": texts}
    types = {"rowkind": pa.string(), "id": pa.int64(), "k": pa.string()}
    return pa.table({name: pa.array(columns[name], types[name]) for name in columns})


def apply(handle: TableHandle, *changes: tuple[str, int, str | None], **options):
    return IcebergTable(handle).upsert(as_rows([*changes]), ["id"], kinds="rowkind", **options)


def compact(other: TableHandle) -> None:
    IcebergTable(other).compact(rewrite_all=True)


def applied(model: dict[int, str], changes: list[tuple[str, int, str | None]]) -> dict[int, str]:
    model = dict(model)
    for kind, key, text in changes:
        if kind in (INSERT, AFTER):
            model[key] = text
        else:
            model.pop(key, None)
    return model


@METHODS
def test_the_last_change_of_a_key_counts_in_one_commit(storage, version, mode):
    handle = changed_table(storage, version, mode)
    report = apply(
        handle,
        (BEFORE, 3, "k1"),
        (AFTER, 3, "first"),
        (AFTER, 3, "last"),
        (DELETE, 4, None),
        (INSERT, 20, "new"),
        (INSERT, 21, "new"),
        (DELETE, 21, None),
        (DELETE, 9, None),
        (INSERT, 9, "again"),
        (DELETE, 99, None),
    )
    old = {n: f"k{n % 2}" for n in range(10) if n != 4}
    assert dict(pairs_of(handle)) == old | {3: "last", 9: "again", 20: "new"}
    assert (report.rows, report.replaced_rows) == (3, 3)
    assert "3 stored rows replaced or deleted, published as snapshot" in report.reason
    assert len(handle.load().metadata.snapshots) == 3
    assert stored_files(storage) == referenced_files(handle)


def test_deletes_alone_are_a_delete_and_of_absent_keys_nothing(storage):
    handle = changed_table(storage, 3, MERGE)
    assert apply(handle, (DELETE, 3, None)).kind == "delete"
    assert apply(handle, (DELETE, 3, None)).snapshot_id is None
    assert apply(handle).snapshot_id is None
    assert apply(made_table(MemoryStorage("e")), (DELETE, 3, None)).snapshot_id is None


@settings(max_examples=count(4, whole=20), deadline=None)
@given(
    version_and_mode=st.sampled_from([(1, MERGE), (2, MERGE), (3, COPY), (3, MERGE)]),
    batches=st.lists(CHANGES, min_size=1, max_size=4),
    compacts=st.booleans(),
)
def test_any_batches_are_those_of_a_dict_with_retries_and_compactions(
    version_and_mode, batches, compacts
):
    handle = changed_table(MemoryStorage("t"), *version_and_mode)
    model = {n: f"k{n % 2}" for n in range(10)}
    for number, batch in enumerate(batches):
        changes = [(kind, key, f"{number}-{at}") for at, (kind, key) in enumerate(batch)]
        if compacts:
            meanwhile(handle, compact, seed=50 + number)
        for _ in range(2):
            apply(handle, *changes, commit=lake.CommitId("stream", number))
        model = applied(model, changes)
        assert pairs_of(handle) == sorted(model.items())
    assert stored_files(handle.pointer._storage) == referenced_files(handle)


def test_a_deleted_key_that_another_writer_adds_meanwhile_is_deleted_too(storage):
    handle = changed_table(storage, 2, MERGE)
    other_rows = pa.table({"id": [20], "k": ["theirs"]})
    meanwhile(handle, lambda other: IcebergTable(other).write(other_rows))
    report = apply(handle, (DELETE, 20, None), (INSERT, 21, "new"))
    assert (report.attempts, report.replaced_rows) == (2, 1)
    assert [pair for pair in pairs_of(handle) if pair[0] >= 10] == [(21, "new")]


def test_a_replayed_batch_deletes_nothing_that_came_later(storage):
    handle, commit = changed_table(storage, 3, MERGE), lake.CommitId("stream", 1)
    apply(handle, (DELETE, 3, None), commit=commit)
    apply(handle, (INSERT, 3, "later"))
    assert apply(handle, (DELETE, 3, None), commit=commit).replayed
    assert dict(pairs_of(handle))[3] == "later"


def test_a_replayed_delete_of_an_absent_key_spares_the_row_that_came_later(storage):
    handle, batch = changed_table(storage, 3, MERGE), lake.CommitId("orders", 7)
    first = apply(handle, (DELETE, 44, None), commit=batch)
    assert first.snapshot_id is not None
    assert (first.rows, first.replaced_rows, first.kind) == (0, 0, "delete")
    apply(handle, (INSERT, 44, "later"))
    assert apply(handle, (DELETE, 44, None), commit=batch).replayed
    assert (44, "later") in pairs_of(handle)


def test_of_a_deleted_row_only_the_key_is_needed(storage):
    """Required columns and values that do not fit matter only in rows that are stored."""
    handle = made_table(storage, columns={"id": "long", "n": "int"})
    IcebergTable(handle).write(pa.table({"id": [1, 2], "n": [1, 2]}))
    given = pa.table({"id": [1, 3], "n": pa.array([1 << 40, 3]), "rowkind": ["-D", "+I"]})
    IcebergTable(handle).upsert(given, ["id"], kinds="rowkind")
    assert pairs_of(handle) == [(2, 2), (3, 3)]
    assert head_of(handle).operation == "overwrite"


@pytest.mark.parametrize(
    ("given", "kinds", "error"),
    [
        (
            {"id": [1, None], "k": ["+I", "-D"]},
            "k",
            "column 'id' is a key.*row 1 .rows count from 0",
        ),
        ({"id": [1], "k": ["I"]}, "k", "row 0 has 'I' in column 'k', which is not a row kind"),
        ({"id": [1]}, "op", "kinds is 'op', but the rows have no columns of that name"),
        ({"id": [1]}, ["+I", "+I"], "kinds has 2 values for 1 row:"),
        ({"n": [1], "op": ["-D"]}, "op", "column 'id' is a key, but is null in 1 of 1 rows"),
        (
            {"id": [1, 2, 2], "n": [1, 1, 1 << 40], "op": ["-D", "+I", "+U"]},
            "op",
            r"'n'.*the first .*in row 2",
        ),
    ],
)
def test_changes_without_a_kind_or_a_key_are_refused(storage, given, kinds, error):
    handle = made_table(storage, columns={"id": "long", "k": "string", "n": "int"})
    with pytest.raises(InvalidRequestError, match=error):
        IcebergTable(handle).upsert(pa.table(given), ["id"], kinds=kinds)
    assert not handle.load().metadata.snapshots
