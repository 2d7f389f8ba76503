"""Rows replace those with the same key: each key is there once, also beside other writers."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import POSITION_DELETES
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, sampled_states
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.row_changes.changed_table import (
    COPY,
    LINEAGE,
    MERGE,
    METHODS,
    changed_table,
    live_files,
    pairs_of,
    rows,
)
from tests.unit.iceberg.write.made_tables import (
    head_of,
    ids_of,
    made_table,
    referenced_files,
    stored_files,
)


def upsert(handle: TableHandle, *ids: int, k: str = "new", **options):
    return IcebergTable(handle).upsert(rows(*ids, k=k), by=["id"], **options)


def with_new(*ids: int) -> list[tuple[int, str]]:
    """The rows of the table after an upsert of these keys."""
    old = {n: f"k{n % 2}" for n in range(10)}
    return sorted((old | dict.fromkeys(ids, "new")).items())


def test_the_log_counts_the_stored_rows_that_were_replaced(storage, caplog):
    handle = changed_table(storage, 2, MERGE)
    with caplog.at_level(logging.INFO):
        found = [upsert(handle, *ids).snapshot_id for ids in [(20,), (3, 21)]]
    logged = [each.getMessage() for each in caplog.records if "UPSERT" in each.getMessage()]
    assert [each.rpartition(": ")[2] for each in logged] == [
        f"0 stored rows replaced or deleted, published as snapshot {found[0]}",
        f"1 stored row replaced or deleted, published as snapshot {found[1]}",
    ]


@METHODS
def test_rows_with_stored_keys_replace_them_and_others_are_added(storage, version, mode):
    handle = changed_table(storage, version, mode)
    report = upsert(handle, 3, 8, 20, 21)
    assert (report.rows, report.replaced_rows, report.kind) == (4, 2, "overwrite")
    assert pairs_of(handle) == with_new(3, 8, 20, 21)
    assert len(handle.load().metadata.snapshots) == 3
    assert stored_files(storage) == referenced_files(handle)
    is_merged = version > 1 and mode == MERGE
    assert bool(live_files(handle, POSITION_DELETES)) is is_merged


def test_new_keys_alone_are_an_append(storage):
    handle = changed_table(storage, 2, MERGE)
    report = upsert(handle, 20)
    assert (report.kind, report.replaced_rows, report.files) == ("append", 0, 1)
    assert ids_of(handle) == [*range(10), 20]


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_a_new_row_keeps_the_id_of_the_row_that_it_replaces(storage, mode):
    handle = changed_table(storage, 3, mode)
    before = pairs_of(handle, LINEAGE)
    upsert(handle, 3, 20)
    after = pairs_of(handle, LINEAGE)
    assert [each[:2] for each in after[:10]] == [each[:2] for each in before]
    assert [each[0] for each in after if each[2] == 3] == [3, 20]
    assert after[10][1] >= 10, "a new row gets an id that no row had"


def test_every_row_of_a_repeated_stored_key_is_replaced(storage):
    handle = changed_table(storage, 3, MERGE)
    IcebergTable(handle).write(rows(3, 3))
    assert upsert(handle, 3).replaced_rows == 3
    assert pairs_of(handle) == with_new(3)


def test_a_key_of_several_columns_with_a_partition(storage):
    handle = changed_table(storage, 2, MERGE, partition={"k": "identity"})
    given = pa.table({"id": [3, 3], "k": ["k1", "k0"]})
    report = IcebergTable(handle).upsert(given, by=["k", "id"])
    assert (report.replaced_rows, ids_of(handle)) == (1, [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9])


def test_a_row_of_many_keys_moves_to_the_partition_of_its_new_values(storage):
    """So many keys are compared by their bounds, and the files between them are read."""
    handle = changed_table(storage, 3, MERGE, partition={"k": "identity"})
    report = upsert(handle, *range(3, 203))
    assert (report.replaced_rows, len(ids_of(handle))) == (7, 203)
    assert {each["partition"]["k_part"] for each in live_files(handle)} == {"k0", "k1", "new"}


def test_a_row_that_was_deleted_by_its_key_is_not_replaced(storage):
    handle = changed_table(storage, 2, MERGE)
    delete_by_key(handle, 3)
    assert upsert(handle, 3, 4).replaced_rows == 1
    assert pairs_of(handle) == with_new(3, 4)


def test_the_identifier_fields_are_the_key_by_default(storage):
    handle = changed_table(storage, 2, MERGE)
    with pytest.raises(InvalidRequestError, match=r"no identifier fields.*by=\['id'\]"):
        IcebergTable(handle).upsert(rows(3))
    schema = replace(handle.load().metadata.schema, identifier_field_ids=(1,))
    commit_metadata(handle, lambda loaded: replace(loaded.metadata, schemas=(schema,)))
    assert IcebergTable(handle).upsert(rows(3)).replaced_rows == 1


def test_a_table_without_rows_and_a_call_without_rows(storage):
    handle = made_table(storage, 3)
    assert upsert(handle).snapshot_id is None
    assert (upsert(handle, 1, 2).kind, ids_of(handle)) == ("append", [1, 2])
    assert upsert(handle).snapshot_id is None


@pytest.mark.parametrize(
    ("given", "by", "error"),
    [
        ({"id": [1, 2, 1, 1]}, ["id"], "2 of 4 rows occurs again in .* such as id=1: keep"),
        ({"id": [1, None]}, ["id"], "column 'id' is a key, but is null in 1 of 2 rows"),
        ({"id": [1]}, ["ids"], "the key names 'ids', but the table has only.*did you mean 'id'"),
        ({"id": [1]}, "id", "the key must be a list of columns"),
        ({"id": [1]}, [], "the key must be a list of columns"),
        ({"id": [1]}, ["f"], "column 'f' is float, which cannot be a key"),
        ({"name": ["a"]}, ["id"], "no column 'name'"),
    ],
)
def test_keys_that_do_not_name_single_rows_are_refused(storage, given, by, error):
    handle = made_table(storage, 2, columns={"id": "long", "f": "float"})
    IcebergTable(handle).write(pa.table({"id": [1]}))
    before = stored_files(storage)
    with pytest.raises(InvalidRequestError, match=error):
        IcebergTable(handle).upsert(pa.table(given), by=by)
    assert stored_files(storage) == before


# What other writers do meanwhile


@pytest.mark.parametrize(("version", "mode"), [(1, MERGE), (3, MERGE)])
def test_a_key_that_another_writer_adds_meanwhile_is_replaced_too(storage, version, mode):
    handle = changed_table(storage, version, mode)
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(20)))
    report = upsert(handle, 3, 20)
    assert (report.attempts, report.replaced_rows) == (2, 2)
    assert pairs_of(handle) == with_new(3, 20)
    assert stored_files(storage) == referenced_files(handle)


def test_two_upserts_of_one_key_into_an_empty_table_leave_one_row(storage):
    handle = made_table(storage, 2)
    meanwhile(handle, lambda other: upsert(other, 1, k="first"))
    assert upsert(handle, 1).replaced_rows == 1
    assert pairs_of(handle) == [(1, "new")]
    assert stored_files(storage) == referenced_files(handle)


def test_the_key_is_the_column_with_its_name_also_if_two_columns_swap_names_meanwhile(storage):

    def swap(other):
        schema = other.load().metadata.schema
        first, second = schema.fields
        swapped = (replace(first, name="n"), replace(second, name="id"))
        newer = replace(schema, schema_id=1, fields=swapped)
        members = {"schemas": (schema, newer), "current_schema_id": 1}
        commit_metadata(other, lambda loaded: replace(loaded.metadata, **members))
        IcebergTable(other).write(pa.table({"n": [7], "id": [70]}))

    handle = made_table(storage, 2, columns={"id": "long", "n": "long"})
    IcebergTable(handle).write(pa.table({"id": [1], "n": [1]}))
    meanwhile(handle, swap)
    report = IcebergTable(handle).upsert(pa.table({"id": [7], "n": [2]}), by=["id"])
    assert (report.attempts, report.replaced_rows) == (2, 0)
    assert pairs_of(handle, ["id", "n"]) == [(1, 1), (7, 2), (70, 7)]


def test_keys_that_cannot_be_the_same_are_no_conflict(storage):
    handle = changed_table(storage, 2, MERGE)
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(50)))
    assert upsert(handle, 3, 20).attempts == 1
    assert pairs_of(handle) == sorted([*with_new(3, 20), (50, "k0")])


@pytest.mark.parametrize(
    ("mode", "other"), [(COPY, "compact"), (MERGE, "update"), (MERGE, "delete")]
)
def test_changes_of_the_same_rows_meanwhile_lose_nothing(storage, mode, other):
    acts = {
        "compact": lambda handle: IcebergTable(handle).compact(rewrite_all=True),
        "update": lambda handle: IcebergTable(handle).update("id = 3", {"k": "theirs"}),
        "delete": lambda handle: IcebergTable(handle).delete("id IN (3, 4)"),
    }
    handle = changed_table(storage, 3, mode)
    meanwhile(handle, acts[other])
    upsert(handle, 3, 20)
    gone = {4} if other == "delete" else set()
    assert pairs_of(handle) == [pair for pair in with_new(3, 20) if pair[0] not in gone]
    assert stored_files(storage) == referenced_files(handle)


def test_the_same_identity_upserts_once(storage):
    handle, commit = changed_table(storage, 3, MERGE), lake.CommitId("load", 1)
    meanwhile(handle, lambda other: upsert(other, 3, 20, k="theirs", commit=commit))
    assert upsert(handle, 3, 20, commit=commit).replayed
    assert upsert(handle, 3, 20, commit=commit).replayed
    assert dict(pairs_of(handle))[3] == "theirs"
    assert stored_files(storage) == referenced_files(handle)


def test_properties_are_in_the_summary_of_the_snapshot(storage):
    handle = changed_table(storage, 2, MERGE)
    upsert(handle, 3, properties={"batch": "7"})
    assert head_of(handle).summary["batch"] == "7"


def test_a_fault_at_any_storage_call_upserts_once_or_not_at_all():
    def start() -> CrashableStorage:
        found = CrashableStorage()
        changed_table(found, 3, MERGE)
        return found

    def act(storage, acknowledged):
        handle = handle_on(storage, simulated(len(storage.files())))
        acknowledged.append(upsert(handle, 3, 20, commit=lake.CommitId("a", 1)).snapshot_id)

    for trial in sampled_states(act, start=start(), seed=SEED):
        storage = trial.reopened()
        handle = handle_on(storage, simulated(99))
        assert pairs_of(handle) in (with_new(), with_new(3, 20)), trial
        assert not trial.acknowledged or pairs_of(handle) == with_new(3, 20), trial
        act(storage, [])
        assert pairs_of(handle) == with_new(3, 20), trial
        assert referenced_files(handle) <= set(storage.files()), trial


@pytest.mark.parametrize("count", [2, 200])
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("uuid", lambda n: n.to_bytes(16, "big")),
        ("fixed[3]", lambda n: n.to_bytes(3, "big")),
        ("time", lambda n: 3_600_000_000 + n),
        ("timestamp", lambda n: 1_700_000_000_000_000 + n),
    ],
)
def test_keys_of_bytes_and_times_are_found_as_they_are_stored(storage, kind, key, count):
    handle = made_table(storage, columns={"id": "long", "key": kind})
    table = IcebergTable(handle)
    stored = table.scan(["key"]).schema.field("key").type

    def keyed(first: int) -> pa.Table:
        keys = pa.array([key(n) for n in range(count)], stored)
        return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "key": keys})

    table.write(keyed(0))
    table.upsert(keyed(1000).slice(1), by=["key"])
    assert ids_of(handle) == [0, *range(1001, 1000 + count)]
