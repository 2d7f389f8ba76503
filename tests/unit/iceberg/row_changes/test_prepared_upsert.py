"""Files of other processes replace rows by their keys, in one commit, also with many workers."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.row_changes import file_keys
from lakeformat.iceberg.table.table import IcebergTable
from lakeformat.storage import MemoryStorage
from tests.unit.iceberg.meanwhile import meanwhile
from tests.unit.iceberg.row_changes.changed_table import (
    COPY,
    MERGE,
    METHODS,
    changed_table,
    pairs_of,
    rows,
)
from tests.unit.iceberg.write.made_tables import made_table, referenced_files, stored_files


class Elsewhere:
    """Runs units as other processes do: work, units and results are pickled."""

    def __init__(self) -> None:
        self.units = 0

    def outcomes(self, work, units, stop):
        sent = pickle.dumps(work)
        for unit in units:
            self.units += 1
            yield pickle.loads(pickle.dumps(pickle.loads(sent)(pickle.loads(pickle.dumps(unit)))))


@pytest.fixture
def storage():
    return MemoryStorage("t")


def prepared(handle: TableHandle, *ids: int, k: str = "new") -> list[lake.CommitMessage]:
    with IcebergTable(handle).new_writer() as writer:
        writer.write(rows(*ids, k=k))
        return writer.prepare()


def upsert(handle: TableHandle, *files: tuple[int, ...], **options):
    messages = [message for ids in files for message in prepared(handle, *ids)]
    return IcebergTable(handle).commit(messages, upsert_by=["id"], **options)


def with_new(*ids: int) -> list[tuple[int, str]]:
    old = {n: f"k{n % 2}" for n in range(10)}
    return sorted((old | dict.fromkeys(ids, "new")).items())


@METHODS
def test_the_rows_of_all_files_replace_those_with_their_keys(storage, version, mode):
    handle = changed_table(storage, version, mode)
    report = upsert(handle, (3, 20), (8, 21))
    assert (report.rows, report.replaced_rows, report.kind) == (4, 2, "overwrite")
    assert report.reason.startswith("2 stored rows replaced, published as snapshot ")
    assert pairs_of(handle) == with_new(3, 8, 20, 21)
    assert len(handle.load().metadata.snapshots) == 3
    assert stored_files(storage) == referenced_files(handle)


@pytest.mark.parametrize(("version", "mode"), [(2, COPY), (3, MERGE)])
def test_workers_elsewhere_search_the_stored_files(tmp_path, version, mode):
    catalog, executor = lake.open_catalog(str(tmp_path), format="iceberg"), Elsewhere()
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", rows(0).schema, format_version=version, options={"write.merge.mode": mode}
    )
    table.write(rows(*range(10)))
    with table.new_writer() as writer:
        writer.write(rows(3, 8, 20, k="new"))
        messages = writer.prepare()
    assert table.commit(messages, upsert_by=["id"], executor=executor).replaced_rows == 2
    found = [(*row.values(),) for row in table.scan().to_arrow().to_pylist()]
    assert (sorted(found), executor.units) == (with_new(3, 8, 20), 1)


def test_keys_are_read_in_parts_that_fit_into_memory(storage, monkeypatch):
    monkeypatch.setattr(file_keys, "_MOST_ROWS", 3)
    handle = changed_table(storage, 2, MERGE)
    assert upsert(handle, (3, 20), (8, 1), (4, 5, 6, 7)).replaced_rows == 7
    assert pairs_of(handle) == with_new(1, 3, 4, 5, 6, 7, 8, 20)


def test_many_keys_are_compared_by_their_bounds(storage):
    handle = changed_table(storage, 3, MERGE)
    assert upsert(handle, (*range(7, 107),), (*range(200, 300),)).replaced_rows == 3
    assert pairs_of(handle) == with_new(*range(7, 107), *range(200, 300))


def test_a_table_without_rows_and_a_commit_without_files(storage):
    handle = made_table(storage, 3)
    assert IcebergTable(handle).commit([], upsert_by=["id"]).snapshot_id is None
    assert (upsert(handle, (1, 2)).kind, len(pairs_of(handle))) == ("append", 2)


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (((3, 4), (4, 5)), "2 of 4 rows have a key that another row has, too, such as id=4"),
        (((None,),), r"column 'id' is a key, but .* has rows with a null there"),
    ],
)
def test_keys_that_do_not_name_single_rows_are_refused_and_the_files_kept(storage, files, error):
    handle = changed_table(storage, 2, MERGE)
    before = pairs_of(handle)
    messages = [message for ids in files for message in prepared(handle, *ids)]
    kept = stored_files(storage)
    with pytest.raises(InvalidRequestError, match=error):
        IcebergTable(handle).commit(messages, upsert_by=["id"])
    assert (pairs_of(handle), stored_files(storage)) == (before, kept)
    assert IcebergTable(handle).abort(messages) == []


@pytest.mark.parametrize("mode", [COPY, MERGE])
@pytest.mark.parametrize("act", ["append", "compact"])
def test_another_commit_meanwhile_loses_nothing_and_the_files_are_kept(storage, mode, act):
    acts = {
        "append": lambda other: IcebergTable(other).write(rows(20)),
        "compact": lambda other: IcebergTable(other).compact(rewrite_all=True),
    }
    handle = changed_table(storage, 3, mode)
    messages = prepared(handle, 3, 20)
    meanwhile(handle, acts[act])
    report = IcebergTable(handle).commit(messages, upsert_by=["id"])
    assert (report.attempts, report.replaced_rows) == (2, 2 if act == "append" else 1)
    assert pairs_of(handle) == with_new(3, 20)
    assert stored_files(storage) == referenced_files(handle)


def test_the_same_identity_publishes_once_and_reports_the_files_that_it_does_not_use(storage):
    handle, commit = changed_table(storage, 3, MERGE), lake.CommitId("load", 1)
    meanwhile(handle, lambda other: upsert(other, (3,), commit=commit))
    for _ in range(2):
        messages = prepared(handle, 3, 4, k="late")
        again = IcebergTable(handle).commit(messages, upsert_by=["id"], commit=commit)
        assert (again.replayed, again.unpublished_files) == (True, 1)
        IcebergTable(handle).abort(messages)
    assert pairs_of(handle) == with_new(3)
    assert stored_files(storage) == referenced_files(handle)


def test_files_that_are_published_already_are_refused(storage):
    handle = changed_table(storage, 2, MERGE)
    messages = prepared(handle, 3)
    IcebergTable(handle).commit(messages, upsert_by=["id"])
    with pytest.raises(InvalidRequestError, match="is published already"):
        IcebergTable(handle).commit(messages, upsert_by=["id"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"executor": "threads"}, "executor has an effect only with upsert_by"),
        ({"upsert_by": ["id"], "overwrite": "table"}, "upsert_by and overwrite exclude each other"),
        ({"upsert_by": ["f"]}, "the key names 'f', but the table has only"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(storage, options, error):
    with pytest.raises(InvalidRequestError, match=error):
        IcebergTable(made_table(storage)).commit([], **options)


def test_keys_of_bytes_and_times_are_found_as_they_are_stored(storage):
    handle = made_table(storage, columns={"id": "long", "at": "time", "code": "fixed[3]"})
    table = IcebergTable(handle)

    def stock(first: int) -> pa.Table:
        return pa.table(
            {
                "id": range(first, first + 150),
                "at": pa.array(range(150), pa.time64("us")),
                "code": pa.array([n.to_bytes(3, "big") for n in range(150)], pa.binary(3)),
            }
        )

    table.write(stock(0))
    with table.new_writer() as writer:
        writer.write(stock(1000).slice(1))
        messages = writer.prepare()
    assert table.commit(messages, upsert_by=["at", "code"]).replaced_rows == 149
    assert [row[0] for row in pairs_of(handle, ["id"])] == [0, *range(1001, 1150)]
