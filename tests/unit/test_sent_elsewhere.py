"""Tables and scans in another process: pickled ones work there, or raise the reason."""

import pickle

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM, Environment
from lakeformat.mixed.batch.base_writer import RepeatedKeysError
from lakeformat.paimon.merge.functions.function import RefusedRow
from lakeformat.storage.locked_creation import LockedCreation
from lakeformat.storage.process_lock import ProcessLock
from lakeformat.types.type_text import _UnknownTypeError

ROWS = pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]})


def sent(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.fixture
def table(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    made = catalog.create_table("shop.orders", ROWS.schema)
    made.write(ROWS)
    return made


def test_a_scan_is_read_where_it_was_sent(table):
    scan = table.scan(["note"], where="id > 1")
    there = sent(scan)

    found = [batch for split in map(sent, scan.splits()) for batch in there.read(split)]

    assert pa.Table.from_batches(found)["note"].to_pylist() == ["b", "c"]


def test_a_table_is_written_where_it_was_sent_and_committed_here(table):
    with sent(table).new_writer() as writer:
        writer.write(ROWS)
        messages = sent(writer.prepare())

    table.commit(messages)

    assert table.scan().count() == 6


def test_a_scan_meets_one_more_condition_without_planning_anew(table):
    scan = table.scan(where="id > 1")

    assert scan.meeting("id < 3").to_arrow()["id"].to_pylist() == [2]
    assert scan.to_arrow()["id"].to_pylist() == [2, 3]


def test_the_real_world_is_the_one_that_is_there():
    assert sent(SYSTEM) is SYSTEM
    assert sent(Environment(now_millis=_noon)).now_millis() == 12


def _noon():
    return 12


def test_what_lives_in_memory_is_not_sent():
    table = lake.open_catalog("memory://sent/warehouse")
    table.create_database("shop")
    orders = table.create_table("shop.orders", ROWS.schema)

    with pytest.raises(lake.InvalidRequestError, match="is in the memory of this process"):
        pickle.dumps(orders)


def test_a_lock_stays_where_the_table_was_opened(tmp_path):
    from lakeformat.storage.local import LocalStorage

    there = sent(LockedCreation(LocalStorage(), ProcessLock(), "shop.orders"))

    there.overwrite(str(tmp_path / "file"), b"rows")
    with pytest.raises(lake.LockUnavailableError, match="only the process that opened"):
        there.create(str(tmp_path / "snapshot-1"), b"{}")
    assert not (tmp_path / "snapshot-1").exists()


def test_an_object_store_is_opened_anew_with_its_keys():
    options = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key": "a", "s3.secret-key": "b"}
    storage = lake.open_catalog("s3://bucket/warehouse", options=options)._storage

    there = sent(storage)

    assert there.uri("") == storage.uri("")
    assert there.client.config.values == storage.client.config.values


def test_an_error_about_repeated_keys_of_a_mixed_table_keeps_its_message():
    """It is raised in Spark's tasks, and read in the driver."""
    error = RepeatedKeysError(2, "id=1 (2 rows)", "shop.orders")
    there = sent(error)
    assert (str(there), there.rows, there.examples) == (str(error), 2, "id=1 (2 rows)")


@pytest.mark.parametrize(
    "error", [RefusedRow("the sum is too large", 3), _UnknownTypeError("unknown type", "BLOB2")]
)
def test_an_error_with_details_keeps_them(error):
    there = sent(error)
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))
