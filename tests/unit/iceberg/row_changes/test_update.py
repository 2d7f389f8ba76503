"""Updates, and deletes that rewrite files: each row once, also beside other writers."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import CommitConflictError, InvalidRequestError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.metadata.manifest import EQUALITY_DELETES, POSITION_DELETES
from lakeformat.iceberg.metadata.updates import set_properties
from lakeformat.iceberg.sort_order import SortField, SortOrder
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from lakeformat.tables.row_change_report import Method
from lakeformat.testing import CrashableStorage
from tests.crash.simulated import simulated
from tests.sampling import SEED, count, sampled_states
from tests.unit.iceberg.compact.made_deletes import delete_by_key, delete_by_position
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

RACES = pytest.mark.parametrize(("version", "mode"), [(2, COPY), (3, MERGE)])
REWRITES = pytest.mark.parametrize(("version", "mode"), [(1, MERGE), (3, COPY)])


def delete(handle: TableHandle, where: str, **options):
    return IcebergTable(handle).delete(where, **options)


def update(handle: TableHandle, where: str | None, /, **values):
    return IcebergTable(handle).update(where, values)


def change_metadata(handle: TableHandle, **members) -> None:
    commit_metadata(handle, lambda loaded: replace(loaded.metadata, **members))


# Deletes that rewrite files


@REWRITES
def test_a_file_with_deleted_rows_is_rewritten_without_them(storage, version, mode):
    handle = changed_table(storage, version, mode)
    report = delete(handle, "id IN (1, 3)")
    assert (report.method, report.rows, report.files_rewritten) == (Method.REWRITE, 2, 1)
    assert pairs_of(handle) == [(n, f"k{n % 2}") for n in (0, 2, 4, 5, 6, 7, 8, 9)]
    assert sorted(each["record_count"] for each in live_files(handle)) == [3, 5]
    assert live_files(handle, POSITION_DELETES) == []
    assert head_of(handle).operation == "overwrite"
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize("where", ["id < 5", "id IN (0, 1, 2, 3, 4)"])
def test_a_file_whose_rows_are_all_deleted_is_not_rewritten(storage, where):
    handle = changed_table(storage, 2, COPY)
    report = delete(handle, where)
    assert (report.files_removed, report.files_rewritten, report.files_added) == (1, 0, 0)
    assert (head_of(handle).operation, ids_of(handle)) == ("delete", [5, 6, 7, 8, 9])


def test_rows_of_other_partitions_are_not_touched(storage):
    handle = changed_table(storage, 2, COPY, partition={"k": "identity"})
    report = delete(handle, "id IN (1, 7)")
    assert (report.files_rewritten, report.files_added) == (2, 1)
    assert {each["partition"]["k_part"] for each in live_files(handle)} == {"k0", "k1"}
    assert ids_of(handle) == [0, 2, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_rows_keep_their_lineage(storage, mode):
    handle = changed_table(storage, 3, mode)
    before = pairs_of(handle, LINEAGE)
    delete(handle, "id IN (1, 7)")
    assert pairs_of(handle, LINEAGE) == [each for each in before if each[0] not in (1, 7)]


def test_older_deletes_of_any_kind_are_applied_by_a_rewrite(storage):
    """Also a key outside of the condition, which the search for rows does not need."""
    handle = changed_table(storage, 2, COPY)
    first = min(live_files(handle), key=lambda each: each["lower_bounds"])["file_path"]
    delete_by_key(handle, 4)
    delete_by_position(handle, first, 0)
    delete(handle, "id = 1")
    assert ids_of(handle) == [2, 3, 5, 6, 7, 8, 9]
    assert len(live_files(handle, EQUALITY_DELETES)) == 1
    update(handle, "id = 7", k="new")
    assert ids_of(handle) == [2, 3, 5, 6, 7, 8, 9]


def test_rewritten_files_have_the_sort_order_of_the_table(storage):
    handle = changed_table(storage, 2, COPY)
    order = SortOrder(1, (SortField((1,), "identity", "desc", "nulls-last"),))
    change_metadata(handle, sort_orders=(order,), default_sort_order_id=1)
    delete(handle, "id = 1")
    [new] = [each for each in live_files(handle) if each["sort_order_id"] == 1]
    assert new["record_count"] == 4
    found = IcebergTable(handle).scan(where="id < 5").to_arrow().column("id").to_pylist()
    assert found == [4, 3, 2, 0]


def test_a_dry_run_counts_and_changes_nothing(storage):
    handle = changed_table(storage, 2, COPY)
    before = (stored_files(storage), head_of(handle))
    seen = []
    report = IcebergTable(handle).delete("id < 6", dry_run=True, on_progress=seen.append)
    assert (report.rows, report.files_removed, report.snapshot_id) == (6, 1, None)
    assert report.reason == "6 rows would be deleted; nothing was changed"
    assert (stored_files(storage), head_of(handle)) == before
    assert [each.done for each in seen] == [0, 1]


@pytest.mark.parametrize("mode", ["copy", ""])
def test_an_unknown_mode_is_refused(storage, mode):
    handle = changed_table(storage, 2, mode)
    with pytest.raises(InvalidRequestError, match=r"'write\.delete\.mode' .* not 'merge-on-read'"):
        delete(handle, "id = 1")


# Updates


@METHODS
def test_rows_that_meet_the_condition_get_new_values(storage, version, mode):
    handle = changed_table(storage, version, mode)
    report = update(handle, "id IN (3, 8)", k="new")
    assert (report.rows, report.operation) == (2, "UPDATE")
    new = {3: "new", 8: "new"}
    assert pairs_of(handle) == [(n, new.get(n, f"k{n % 2}")) for n in range(10)]
    assert head_of(handle).operation == "overwrite"
    assert len(handle.load().metadata.snapshots) == 3
    assert stored_files(storage) == referenced_files(handle)
    is_merged = report.method is not Method.REWRITE
    assert bool(live_files(handle, POSITION_DELETES)) is is_merged
    assert (report.files_marked, report.files_rewritten) == ((2, 0) if is_merged else (0, 2))


@RACES
def test_a_function_computes_values_from_the_old_rows(storage, version, mode):
    handle = changed_table(storage, version, mode)
    update(
        handle, None, id=lambda old: pc.add(old["id"], 100), k=lambda old: pc.ascii_upper(old["k"])
    )
    assert pairs_of(handle) == [(n + 100, f"K{n % 2}") for n in range(10)]
    assert len(live_files(handle)) in (1, 2)
    assert live_files(handle, POSITION_DELETES) == []


@RACES
def test_rows_move_to_the_partition_of_their_new_values(storage, version, mode):
    handle = changed_table(storage, version, mode, partition={"k": "identity"})
    update(handle, "id < 2", k="other")
    moved = [each for each in live_files(handle) if each["partition"]["k_part"] == "other"]
    assert sum(each["record_count"] for each in moved) == 2
    assert pairs_of(handle)[:3] == [(0, "other"), (1, "other"), (2, "k0")]


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_an_updated_row_keeps_its_id_and_has_a_new_last_update(storage, mode):
    handle = changed_table(storage, 3, mode)
    before = pairs_of(handle, LINEAGE)
    update(handle, "id IN (3, 8)", k="new")
    after = pairs_of(handle, LINEAGE)
    assert [each[:2] for each in after] == [each[:2] for each in before]
    assert {each[0]: each[2] for each in after if each[2] > 2} == {3: 3, 8: 3}


def test_a_uuid_may_be_written_as_text(storage):
    handle = made_table(storage, 3, columns={"id": "long", "u": "uuid"})
    IcebergTable(handle).write(pa.table({"id": [1, 2]}))
    text = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    update(handle, "id = 1", u=text)
    assert pairs_of(handle) == [(1, uuid.UUID(text).bytes), (2, None)]
    with pytest.raises(InvalidRequestError, match="column 'u' is a uuid"):
        update(handle, "id = 1", u="f79c")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, "set must map columns to values"),
        ({"kk": "a"}, "the columns are id, k"),
        ({"id": "seven"}, "is not a value of column 'id'"),
        ({"id": lambda old: old["k"]}, "id"),
        ({"id": lambda old: pa.array([1])}, "called with 5 rows and returned 1 value:"),
    ],
)
def test_values_that_do_not_fit_are_refused_and_leave_no_file(storage, values, error):
    handle = changed_table(storage, 2, MERGE)
    before = stored_files(storage)
    with pytest.raises(InvalidRequestError, match=error):
        update(handle, None, **values)
    assert stored_files(storage) == before
    assert ids_of(handle) == [*range(10)]


def test_nothing_is_published_if_no_row_meets_the_condition(storage):
    handle = changed_table(storage, 2, MERGE)
    head = head_of(handle)
    assert update(handle, "id = 77", k="a").snapshot_id is None
    assert update(made_table(MemoryStorage("e"), 2), "id = 7", k="a").rows == 0
    assert head_of(handle) == head


# What other writers do meanwhile


@RACES
def test_an_update_beside_a_compaction_is_planned_again(storage, version, mode):
    handle = changed_table(storage, version, mode)
    meanwhile(handle, lambda other: IcebergTable(other).compact(rewrite_all=True))
    assert update(handle, "id = 3", k="new").attempts == 2
    assert [pair for pair in pairs_of(handle) if pair[0] == 3] == [(3, "new")]
    assert ids_of(handle) == [*range(10)]
    assert stored_files(storage) == referenced_files(handle)


@RACES
def test_a_compaction_beside_an_update_keeps_the_new_values(storage, version, mode):
    handle = changed_table(storage, version, mode)
    meanwhile(handle, lambda other: update(other, "id = 3", k="new"))
    IcebergTable(handle).compact(rewrite_all=True)
    assert pairs_of(handle)[3] == (3, "new")
    assert ids_of(handle) == [*range(10)]


@RACES
@pytest.mark.parametrize("where", ["id = 3", "id < 5"])
def test_a_row_that_is_deleted_meanwhile_does_not_come_back(storage, version, mode, where):
    handle = changed_table(storage, version, mode)
    meanwhile(handle, lambda other: delete(other, where))
    update(handle, "id = 3", k="new")
    gone = {"id = 3": [3], "id < 5": [0, 1, 2, 3, 4]}[where]
    assert ids_of(handle) == [n for n in range(10) if n not in gone]
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_a_key_that_is_deleted_meanwhile_does_not_come_back(storage, mode):
    handle = changed_table(storage, 2, mode)
    meanwhile(handle, lambda other: delete_by_key(other, 3))
    assert update(handle, "id IN (2, 3)", k="new").attempts == 2
    assert ids_of(handle) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


@RACES
def test_two_updates_of_one_row_at_once_both_count(storage, version, mode):
    def add(handle):
        return update(handle, "id >= 100 OR id = 3", id=lambda old: pc.add(old["id"], 100))

    handle = changed_table(storage, version, mode)
    meanwhile(handle, add)
    add(handle)
    assert ids_of(handle) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 203]


@RACES
def test_matching_rows_that_are_added_meanwhile_are_updated_too(storage, version, mode):
    handle = changed_table(storage, version, mode)
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(3)))
    update(handle, "id = 3", k="new")
    assert [pair for pair in pairs_of(handle) if pair[0] == 3] == [(3, "new"), (3, "new")]


def test_with_snapshot_isolation_rows_that_are_added_meanwhile_are_left_alone(storage):
    handle = changed_table(storage, 2, MERGE)
    chosen = {"write.update.isolation-level": "snapshot"}
    commit_metadata(handle, lambda loaded: set_properties(loaded.metadata, chosen))
    meanwhile(handle, lambda other: IcebergTable(other).write(rows(3)))
    assert update(handle, "id = 3", k="new").attempts == 1
    assert {pair[1] for pair in pairs_of(handle) if pair[0] == 3} == {"k1", "new"}


def rename(handle: TableHandle) -> None:
    """Rename the column ``k``: files keep its old name, and readers find it by its id."""
    schema = handle.load().metadata.schema
    first, second = schema.fields
    newer = replace(schema, schema_id=1, fields=(first, replace(second, name="text")))
    change_metadata(handle, schemas=(schema, newer), current_schema_id=1)


@RACES
def test_a_column_that_is_renamed_meanwhile_gets_the_new_values(storage, version, mode):
    handle = changed_table(storage, version, mode)
    meanwhile(handle, rename)
    update(handle, "k = 'k1' AND id < 3", k="new")
    assert pairs_of(handle, ["id", "text"])[:3] == [(0, "k0"), (1, "new"), (2, "k0")]
    with pytest.raises(InvalidRequestError, match="the columns are id, text"):
        update(handle, "id = 3", k="old name")


def test_a_renamed_column_is_named_if_everything_is_planned_again(storage):
    def both(other):
        rename(other)
        delete(other, "id = 3")

    handle = changed_table(storage, 2, COPY)
    meanwhile(handle, both)
    with pytest.raises(InvalidRequestError, match="the columns are id, text"):
        update(handle, "id = 4", k="new")
    assert stored_files(storage) == referenced_files(handle)


# Once, or not at all


@RACES
def test_the_same_identity_updates_once(storage, version, mode):
    handle, commit = changed_table(storage, version, mode), lake.CommitId("pay", 1)
    add = {"id": lambda old: pc.add(old["id"], 100)}
    meanwhile(handle, lambda other: IcebergTable(other).update("id = 3", add, commit=commit))
    table = IcebergTable(handle)
    assert table.update("id = 3", add, commit=commit).replayed
    assert table.update("id = 103", add, commit=commit).replayed
    assert ids_of(handle) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 103]
    assert stored_files(storage) == referenced_files(handle)


def test_no_file_is_left_after_the_last_conflict(storage):
    handle = changed_table(storage, 3, MERGE)
    before = stored_files(storage)
    handle.pointer.publish = lambda base, metadata: None
    with pytest.raises(CommitConflictError, match="10 times in a row"):
        update(handle, "id = 3", k="new")
    assert stored_files(storage) == before


def test_a_fault_at_any_storage_call_updates_once_or_not_at_all():
    def start() -> CrashableStorage:
        found = CrashableStorage()
        changed_table(found, 2, COPY)
        return found

    def act(storage, acknowledged):
        table = IcebergTable(handle_on(storage, simulated(len(storage.files()))))
        add = {"id": lambda old: pc.add(old["id"], 100)}
        commit = lake.CommitId("a", 1)
        acknowledged.append(table.update("id IN (3, 7)", add, commit=commit).snapshot_id)

    done = [0, 1, 2, 4, 5, 6, 8, 9, 103, 107]
    for trial in sampled_states(act, start=start(), seed=SEED):
        storage = trial.reopened()
        handle = handle_on(storage, simulated(99))
        assert ids_of(handle) in ([*range(10)], done), trial
        assert not trial.acknowledged or ids_of(handle) == done, trial
        act(storage, [])
        assert ids_of(handle) == done, trial
        assert referenced_files(handle) <= set(storage.files()), trial


# Any order of changes


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["append", "delete", "update", "upsert", "compact"]),
        st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True),
    ),
    max_size=5,
)


@settings(max_examples=count(4, whole=20))
@given(st.sampled_from(METHODS.args[1]), CHANGES, st.booleans())
def test_any_changes_in_any_order_leave_the_rows_of_a_list(method, changes, has_partitions):
    """The model is a list of rows; in version 3 a row keeps its id through all changes."""
    version, mode = method
    partition = {"k": "identity"} if has_partitions else None
    handle = changed_table(MemoryStorage("t"), version, mode, partition=partition)
    table, model = IcebergTable(handle), [(n, f"k{n % 2}") for n in range(10)]
    for number, (kind, ids) in enumerate(changes):
        where = f"id IN ({', '.join(map(str, ids))})"
        known = dict(lineage_of(handle))
        if kind == "append":
            table.write(rows(*ids))
            model += [(n, f"k{n % 2}") for n in ids]
        elif kind == "delete":
            assert table.delete(where).rows == sum(pair[0] in ids for pair in model)
            model = [pair for pair in model if pair[0] not in ids]
        elif kind == "update":
            assert table.update(where, {"k": f"u{number}"}).rows == sum(
                pair[0] in ids for pair in model
            )
            model = [(n, f"u{number}" if n in ids else k) for n, k in model]
        elif kind == "compact":
            table.compact(rewrite_all=True)
        else:
            table.upsert(rows(*ids, k="up"), by=["id"])
            model = [pair for pair in model if pair[0] not in ids] + [(n, "up") for n in ids]
        assert sorted(pairs_of(handle)) == sorted(model)
        now = lineage_of(handle)
        assert len({row_id for row_id, _ in now}) == len(now)
        if kind != "append":
            assert all(known.get(row_id, n) == n for row_id, n in now)
    assert stored_files(handle.pointer._storage) == referenced_files(handle)


def lineage_of(handle: TableHandle) -> list[tuple[int, int]]:
    """The id of each row with its key; none before version 3."""
    if handle.load().metadata.format_version < 3:
        return []
    return [(row_id, key) for key, row_id, _ in pairs_of(handle, LINEAGE)]
