"""Overwrites and deletes of whole partitions: what is replaced, what is kept, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.metadata.manifest import DATA, DELETED, EQUALITY_DELETES, entry_schema
from lakeformat.iceberg.metadata.partition_type import partition_type
from lakeformat.iceberg.partition_spec import PartitionField, PartitionSpec
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.iceberg.write.file_choice import FilesOfPartitions
from lakeformat.storage import MemoryStorage
from tests.crash.simulated import simulated
from tests.golden.iceberg import iceberg_table
from tests.golden.relocated import relocate
from tests.unit.iceberg.compact.made_deletes import delete_by_key
from tests.unit.iceberg.path_table import handle_on
from tests.unit.iceberg.write.made_tables import (
    entries_of,
    head_of,
    ids_of,
    made_table,
    manifests_of,
    referenced_files,
    stored_files,
)


@pytest.fixture
def table(storage):
    """Rows 1 and 4 in partition a, 2 in b, 3 in the partition of nulls; two commits."""
    table = IcebergTable(made_table(storage, 3, partition={"k": "identity"}))
    table.write(rows((1, "a"), (2, "b")))
    table.write(rows((3, None), (4, "a")))
    return table


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([each[0] for each in pairs], pa.int64()),
            "k": pa.array([each[1] for each in pairs], pa.string()),
        }
    )


def summary_of(table: IcebergTable) -> dict[str, str]:
    return dict(head_of(table._handle).summary)


def test_the_whole_table_is_replaced(table):
    report = table.write(rows((9, "c")), overwrite="table")
    assert ids_of(table._handle) == [9]
    assert (report.kind, report.rows, report.deleted_files) == ("overwrite", 1, 4)
    summary = summary_of(table)
    assert (summary["deleted-records"], summary["total-records"]) == ("4", "1")
    assert (summary["changed-partition-count"], summary["total-data-files"]) == ("4", "1")


@pytest.mark.parametrize(
    ("overwrite", "new", "left"),
    [
        ({"k": "a"}, (9, "a"), [2, 3, 9]),
        ({"k": None}, (9, None), [1, 2, 4, 9]),
        ("partitions", (9, "b"), [1, 3, 4, 9]),
        ("dynamic", (9, None), [1, 2, 4, 9]),
        ("partitions", (9, "z"), [1, 2, 3, 4, 9]),
        ({}, (9, "z"), [9]),
    ],
)
def test_partitions_are_replaced(storage, table, overwrite, new, left):
    table.write(rows(new), overwrite=overwrite)
    assert ids_of(table._handle) == left
    assert referenced_files(table._handle) <= stored_files(storage)


def test_an_overwrite_that_removes_nothing_is_an_append(table):
    assert table.write(rows((9, "z")), overwrite="partitions").kind == "append"


def test_an_overwrite_without_rows_deletes(table):
    assert table.write(rows(), overwrite={"k": "a"}).kind == "delete"
    assert ids_of(table._handle) == [2, 3]


def test_without_rows_only_partitions_of_rows_are_kept_as_they_are(table):
    report = table.write(rows(), overwrite="partitions")
    assert report.snapshot_id is None
    assert ids_of(table._handle) == [1, 2, 3, 4]


def test_manifests_without_removed_files_are_not_written_again(table):
    table.write(rows((5, "c")))
    before = manifests_of(table._handle)["manifest_path"].to_pylist()
    table.drop_partitions([{"k": "c"}])
    assert manifests_of(table._handle)["manifest_path"].to_pylist()[1:] == before[1:]


def test_deleted_entries_keep_their_sequence_number_and_leave_with_the_next_change(table):
    table.drop_partitions([{"k": "a"}])
    deleted = [each for each in entries_of(table._handle) if each["status"] == DELETED]
    assert sorted(each["sequence_number"] for each in deleted) == [1, 2]
    assert {each["snapshot_id"] for each in deleted} == {head_of(table._handle).snapshot_id}
    table.drop_partitions([{"k": "b"}])
    left = [each for each in entries_of(table._handle) if each["sequence_number"] == 1]
    assert [each["partition"]["k_part"] for each in left] == ["b"]


def test_row_ids_of_kept_files_stay_the_same(table):
    before = {each["file_path"]: each["first_row_id"] for each in entries_of(table._handle)}
    table.drop_partitions([{"k": "a"}])
    live = [each for each in entries_of(table._handle) if each["status"] != DELETED]
    assert {each["file_path"]: each["first_row_id"] for each in live}.items() <= before.items()


def test_all_rows_are_deleted(table):
    report = table.truncate(commit=lake.CommitId("run", 1))
    assert (report.kind, report.deleted_files, ids_of(table._handle)) == ("delete", 4, [])
    assert summary_of(table)["total-files-size"] == "0"
    assert table.truncate(commit=lake.CommitId("run", 1)).replayed
    assert table.truncate().snapshot_id is None


def test_a_partition_that_is_empty_is_no_error(table):
    assert table.drop_partitions([{"k": "z"}]).snapshot_id is None


def test_files_of_commits_made_meanwhile_are_replaced_too(storage, table):
    def batches():
        yield rows((9, "a"))
        IcebergTable(handle_on(storage, simulated(7))).write(rows((8, "a"), (7, "b")))

    table.write(batches(), overwrite={"k": "a"})
    assert ids_of(table._handle) == [2, 3, 7, 9]


def test_row_ids_that_another_writer_gave_meanwhile_stay_the_same(storage):
    """The table was upgraded, so the first commit of version 3 gives its rows their ids."""
    handle = made_table(storage, 2, partition={"k": "identity"})
    table, other = IcebergTable(handle), IcebergTable(handle_on(storage, simulated(7)))
    table.write(rows((1, "a"), (2, "b")))
    commit_metadata(
        handle, lambda loaded: replace(loaded.metadata, format_version=3, next_row_id=0)
    )
    publish, given = handle.pointer.publish, {}

    def late(base, metadata):
        if not given:
            other.write(rows((3, "c")))
            given.update(_row_ids(other))
        return publish(base, metadata)

    handle.pointer.publish = late
    assert table.drop_partitions([{"k": "a"}]).attempts == 2
    assert _row_ids(table).items() <= given.items()


def _row_ids(table: IcebergTable) -> dict[str, int]:
    entries = entries_of(table._handle)
    return {
        each["file_path"]: each["first_row_id"] for each in entries if each["status"] != DELETED
    }


REFUSED = {
    "a row elsewhere": ({"k": "a"}, "some rows belong to the partition 'k_part=b'"),
    "no partition column": ({"id": 1}, "k. If the table is partitioned by a transform such as day"),
    "unknown word": ("all", "overwrite must be one of table, partitions, dynamic"),
    "a number": (3, "a dict of partition values, or a condition made with col, got 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_overwrite_without_meaning_is_refused_and_leaves_no_file(storage, table, case):
    overwrite, message = REFUSED[case]
    before = stored_files(storage)
    with pytest.raises(InvalidRequestError) as caught:
        table.write(rows((9, "b")), overwrite=overwrite)
    assert message in str(caught.value)
    assert stored_files(storage) == before
    assert ids_of(table._handle) == [1, 2, 3, 4]


def test_a_table_without_partitions_has_none_to_replace(storage):
    table = IcebergTable(made_table(storage))
    table.write(rows((1, "a")))
    with pytest.raises(InvalidRequestError, match="use overwrite='table' to replace all rows"):
        table.write(rows((2, "a")), overwrite="partitions")
    table.write(rows((3, "a")), overwrite="dynamic")
    assert ids_of(table._handle) == [3]


def test_a_table_whose_partition_fields_are_void_has_none_to_replace(storage):
    """Its equality deletes apply to rows of all specs, so they may leave only with all rows."""
    table, former = table_with_void_partitions(storage), [2, 3, 4]
    with pytest.raises(InvalidRequestError, match=r"use overwrite='table' to replace all rows"):
        table.write(rows((5, "a")), overwrite="partitions")
    assert ids_of(table._handle) == former
    table.write(rows((6, "a")), overwrite="dynamic")
    assert ids_of(table._handle) == [6]


def test_partitions_of_a_void_spec_keep_their_equality_deletes(storage):
    """A table may get another default spec while rows are written by the void one."""
    table = table_with_void_partitions(storage)
    metadata = table._handle.load().metadata
    spec = metadata.spec_of(metadata.default_spec_id)
    entries = pa.Table.from_pylist(
        [each for each in entries_of(table._handle) if each["spec_id"] == spec.spec_id],
        entry_schema(partition_type(metadata, spec)),
    )
    assert sorted(entries["content"].to_pylist()) == [DATA, EQUALITY_DELETES]
    mask = FilesOfPartitions(entries).mask(metadata, spec, entries)
    assert entries.filter(mask)["content"].to_pylist() == [DATA]


def table_with_void_partitions(storage) -> IcebergTable:
    """Row 1 was written with a partition by k, and deleted by an equality delete of a void spec."""
    handle = made_table(storage, 2, partition={"k": "identity"})
    table = IcebergTable(handle)
    table.write(rows((1, "a"), (2, "a"), (3, "b")))
    field = replace(handle.load().metadata.spec_of(0).fields[0], transform="void")

    def void(loaded):
        specs = (*loaded.metadata.partition_specs, PartitionSpec(1, (field,)))
        return replace(loaded.metadata, partition_specs=specs, default_spec_id=1)

    commit_metadata(handle, void)
    table.write(rows((4, "c")))
    delete_by_key(handle, 1, partition={"k_part": None}, spec_id=1)
    return table


def test_files_that_may_hold_other_rows_are_refused_with_advice(storage):
    """The files of the first spec do not show which of their rows are in the partition."""
    handle = made_table(storage, 2)
    IcebergTable(handle).write(rows((1, "a"), (2, "b")))
    spec = PartitionSpec(1, (PartitionField((2,), 1000, "k", "identity"),))

    def partitioned(loaded):
        specs = (*loaded.metadata.partition_specs, spec)
        return replace(loaded.metadata, partition_specs=specs, default_spec_id=1)

    commit_metadata(handle, partitioned)
    table = IcebergTable(handle)
    table.write(rows((3, "a")))
    with pytest.raises(
        UnsupportedError, match=r"condition may be met by only some rows of 1 file of"
    ):
        table.drop_partitions([{"k": "a"}])
    table.write(rows((4, "a")), overwrite="partitions")
    assert ids_of(handle) == [1, 2, 4]  # as in Java, only files of the same spec are replaced


def test_all_rows_must_be_asked_for_by_name(table):
    with pytest.raises(InvalidRequestError, match=r"use truncate\(\)"):
        table.drop_partitions([{}])


def test_delete_files_leave_with_their_partition(tmp_path):
    """Position deletes of Java: the partition is empty afterwards, and nothing dangles."""
    golden = iceberg_table("mor_position_deletes")
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    table = lake.open_table(str(tmp_path / "t"))
    assert int(table.latest_snapshot().summary["total-delete-files"])
    table.truncate()
    summary = table.latest_snapshot().summary
    totals = {key: value for key, value in summary.items() if key.startswith("total-")}
    totals.pop("total-files-size")  # the copy of the table changed the sizes of delete files
    assert set(totals.values()) == {"0"}, totals
    assert table.scan().count() == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "partitions", "values", "table", "drop", "truncate"]),
        st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["a", "b", None])), max_size=4),
        st.sampled_from(["a", "b", None]),
    ),
    max_size=7,
)


@settings(max_examples=10)
@given(STEPS, st.sampled_from([2, 3]))
def test_random_histories_equal_those_of_a_list(steps, version):
    """The model is a list of rows: each step changes it as the table is changed."""
    table = IcebergTable(made_table(MemoryStorage("t"), version, partition={"k": "identity"}))
    model: list[tuple[int, str | None]] = []
    for verb, new, part in steps:
        if verb == "values":
            new = [(number, part) for number, _ in new]
        if verb == "write":
            table.write(rows(*new))
        elif verb == "drop":
            table.drop_partitions([{"k": part}])
        elif verb == "truncate":
            table.truncate()
        else:
            table.write(rows(*new), overwrite={"k": part} if verb == "values" else verb)
        kept = {
            "write": model,
            "partitions": [each for each in model if each[1] not in {text for _, text in new}],
            "values": [each for each in model if each[1] != part],
            "drop": [each for each in model if each[1] != part],
        }.get(verb, [])
        model = kept + ([] if verb in ("drop", "truncate") else new)
        found = [(row["id"], row["k"]) for row in table.scan().to_arrow().to_pylist()]
        assert sorted(map(str, found)) == sorted(map(str, model))
    newest = table.latest_snapshot()
    if newest is not None:
        assert newest.summary["total-records"] == str(len(model))


# Deletes by a condition


@pytest.fixture
def numbers(storage):
    return table_of_numbers(storage, 2)


def table_of_numbers(storage, version: int) -> IcebergTable:
    """Three files of ids 0-9, 10-19 and 20-29, the last with a null in k."""
    table = IcebergTable(made_table(storage, version))
    for first in (0, 10, 20):
        texts = [f"k{number}" for number in range(first, first + 10)]
        if first == 20:
            texts[-1] = None
        table.write(rows(*zip(range(first, first + 10), texts, strict=True)))
    return table


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id < 10", [*range(10, 30)]),
        ("id >= 10", [*range(10)]),
        ("id BETWEEN 10 AND 19", [*range(10), *range(20, 30)]),
        ("id < 10 OR id > 19", [*range(10, 20)]),
        ("NOT id < 20", [*range(20)]),
        ("id > 99", [*range(30)]),
    ],
)
def test_whole_files_are_deleted_by_their_bounds(numbers, where, left):
    numbers.delete(where)
    assert ids_of(numbers._handle) == left


def test_a_condition_without_columns_deletes_nothing_or_all(numbers):
    assert numbers.delete("false").snapshot_id is None
    assert numbers.delete("true").files_removed == 3
    assert ids_of(numbers._handle) == []


def test_a_null_beside_matching_rows_is_not_deleted(numbers):
    """All texts of the last file are larger, but its null is not."""
    assert numbers.delete("k > 'k19'  AND id > 19").files_removed == 0
    assert ids_of(numbers._handle) == [*range(20), 29]


def test_partitions_by_a_transform_decide_as_well(storage):
    columns = {"id": "long", "ts": "timestamp"}
    table = IcebergTable(made_table(storage, 3, columns=columns, partition={"ts": "day"}))
    days = pa.array([0, 86_399_999_999, 86_400_000_000], pa.timestamp("us"))
    table.write(pa.table({"id": [1, 2, 3], "ts": days}))
    assert table.delete("ts < '1970-01-01 12:00:00'").files_removed == 0
    assert ids_of(table._handle) == [2, 3]
    assert table.delete("ts < '1970-01-02'").files_removed == 1
    assert ids_of(table._handle) == [3]


def test_the_deletes_of_one_file_leave_with_it(tmp_path):
    """A deletion vector of Java must not remain: version 3 forbids it."""
    golden = iceberg_table("v3_deletion_vectors")
    relocate(golden.as_written, tmp_path / "t", golden.expected["original_root"])
    table = lake.open_table(str(tmp_path / "t"))
    entries = entries_of(table._handle)
    vectors = {each["referenced_data_file"] for each in entries if each["referenced_data_file"]}
    assert vectors
    table.delete("id IS NOT NULL")
    live = [each for each in entries_of(table._handle) if each["status"] != DELETED]
    assert live == []
    assert table.latest_snapshot().summary["total-delete-files"] == "0"


CONDITIONS = [
    "id < {}",
    "id >= {}",
    "id = {}",
    "NOT id > {}",
    "id IN ({}, 7)",
    "k = 'a' OR id < {}",
]


@settings(max_examples=15)
@given(
    st.sampled_from([1, 2, 3]),
    st.lists(
        st.lists(st.tuples(st.integers(0, 9) | st.none(), st.sampled_from("ab") | st.none())),
        max_size=4,
    ),
    st.sampled_from(CONDITIONS),
    st.integers(0, 9),
)
def test_a_delete_removes_exactly_the_rows_of_the_condition(version, batches, condition, number):
    """The same table, filtered by SQL's rules, is the model."""
    where = condition.format(number)
    table = IcebergTable(made_table(MemoryStorage("t"), version))
    for batch in batches:
        table.write(rows(*batch))
    everything = table.scan().to_arrow().to_pylist()
    matching = table.scan(where=where).to_arrow().to_pylist()
    assert table.delete(where).rows == len(matching)
    left = table.scan().to_arrow().to_pylist()
    assert sorted(map(str, left + matching)) == sorted(map(str, everything))
