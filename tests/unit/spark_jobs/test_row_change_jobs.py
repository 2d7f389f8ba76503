"""The jobs delete and update change the rows of a condition, once, in tables of every format."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs import delete, update
from spark_jobs.job_requests.row_changes import DeleteRequest

FORMATS = ("paimon", "iceberg", "mixed")
COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING"), ("price", "DECIMAL(9, 2)")]


class Shop:
    """A table of four rows, and requests of jobs on it."""

    def __init__(self, root: str, form: str) -> None:
        options = {"format": "paimon" if form == "paimon" else "iceberg"}
        catalog = lake.open_catalog(root, **options)
        catalog.create_database("shop")
        how: dict[str, Any] = {} if form == "iceberg" else {"primary_key": ["id"]}
        how |= {"format": "mixed"} if form == "mixed" else {}
        how |= {"options": {"bucket": "1"}} if form == "paimon" else {}
        self.table: Any = catalog.create_table("shop.orders", COLUMNS, **how)
        self.asked = {"warehouse": root, "catalog_options": options, "table": "shop.orders"}
        self.put(a=1, b=2, c=3, d=4)

    def put(self, **ids: int) -> None:
        self.table.write(pa.table({"id": [*ids.values()], "name": [*ids]}))

    def request(self, number: int | None = None, **more: Any) -> dict[str, Any]:
        commit = {} if number is None else {"commit_user": "run", "commit_identifier": number}
        return {**self.asked, **commit, **more}

    def names(self) -> dict[int, str]:
        rows = self.table.scan().to_arrow().to_pylist()
        return {row["id"]: row["name"] for row in rows}


@pytest.fixture(params=FORMATS)
def shop(request, tmp_path):
    return Shop(str(tmp_path), request.param)


def test_rows_are_deleted_once_and_a_retry_keeps_what_arrived_since(shop):
    wanted = shop.request(1, where="id < 3")
    planned = delete.run({**wanted, "dry_run": True})
    done = delete.run(wanted)
    shop.put(e=2)
    again = delete.run(wanted)
    assert (planned["skipped"], planned["snapshot_id"], planned["report"]["rows"]) == (
        False,
        None,
        2,
    )
    assert planned["reason"] == "2 rows would be deleted; nothing was changed"
    assert (done["skipped"], done["replayed"], done["report"]["rows"]) == (False, False, 2)
    assert (again["replayed"], again["snapshot_id"]) == (True, done["snapshot_id"])
    assert shop.names() == {2: "e", 3: "c", 4: "d"}


def test_rows_get_new_values_once(shop):
    wanted = shop.request(1, where="id >= 3", set={"name": "new", "price": "1.50"})
    done = update.run(wanted)
    shop.put(z=3)
    assert (done["job"], done["skipped"], done["report"]["rows"]) == ("update", False, 2)
    assert update.run(wanted)["replayed"]
    assert shop.names() in (
        {1: "a", 2: "b", 3: "z", 4: "new"},
        {1: "a", 2: "b", 3: "new", 4: "new"},
    )
    found = shop.table.scan(where="id = 4").to_arrow().to_pylist()
    assert str(found[0]["price"]) == "1.50"
    update.run(shop.request(2, where="id = 4", set={"name": None}))
    assert shop.names()[4] is None


def test_a_condition_that_no_row_meets_is_nothing_to_do_also_in_a_retry(shop):
    bare = delete.run(shop.request(where="id = 99"))
    is_batch = shop.table.format == "mixed"  # its end is recorded in any case
    assert (bare["skipped"], bare["snapshot_id"] is None) == (True, not is_batch)
    wanted = shop.request(1, where="id = 99")
    done = delete.run(wanted)
    shop.put(late=99)
    again = delete.run(wanted)
    assert (done["skipped"], done["report"]["rows"]) == (True, 0)
    assert (again["replayed"], again["snapshot_id"]) == (True, done["snapshot_id"])
    assert shop.names()[99] == "late"


def test_changes_of_the_table_since_a_position_are_kept(tmp_path):
    shop = Shop(str(tmp_path), "paimon")
    read = str(shop.table.position())
    shop.put(stream=2)
    order = {"read_snapshot": read, "conflict": "transaction-order"}
    done = delete.run(shop.request(1, where="id < 4", **order))
    assert done["report"]["rows"] == 2
    assert shop.names() == {2: "stream", 4: "d"}
    with pytest.raises(lake.InvalidRequestError, match="read_snapshot needs conflict='transaction"):
        delete.run(shop.request(where="id = 4", read_snapshot=read))
    with pytest.raises(lake.InvalidRequestError, match="needs read_snapshot, the snapshot from"):
        delete.run(shop.request(where="id = 4", conflict="transaction-order"))


@pytest.mark.parametrize("form", ["iceberg", "mixed"])
def test_a_position_is_refused_with_what_to_do_where_a_table_takes_none(form, tmp_path):
    shop = Shop(str(tmp_path), form)
    with pytest.raises(lake.UnsupportedError, match=r"does not take read_snapshot.*: leave it out"):
        update.run(shop.request(where="id = 1", set={"name": "x"}, read_snapshot="main/1"))
    if form == "mixed":
        update.run(shop.request(where="id = 1", set={"name": "x"}, conflict="transaction-order"))
        assert shop.names()[1] == "x"


@pytest.mark.parametrize(
    ("job", "keys", "words"),
    [
        (delete, {}, "missing key 'where'"),
        (delete, {"where": " "}, "key 'where' must be a non-empty string"),
        (delete, {"where": "id ="}, "id ="),
        (delete, {"where": "no_such = 1"}, "no_such"),
        (delete, {"where": "id = 1", "conflict": "optimistic"}, "must be 'transaction-order'"),
        (delete, {"where": "id = 1", "set": {"name": "x"}}, "unknown key 'set'"),
        (update, {"where": "id = 1"}, "missing key 'set'"),
        (update, {"where": "id = 1", "set": {}}, "new value for each column"),
        (update, {"where": "id = 1", "set": {"name": ["x"]}}, "new value for each column"),
        (update, {"where": "id = 1", "set": {"nme": "x"}}, "did you mean 'name'"),
        (update, {"where": "id = 1", "set": {"price": "much"}}, "much"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(job, keys, words, tmp_path):
    shop = Shop(str(tmp_path), "paimon")
    with pytest.raises(lake.InvalidRequestError, match=words):
        job.run(shop.request(**keys))
    assert len(shop.table.snapshots()) == 1


def test_a_system_table_is_refused(tmp_path):
    shop = Shop(str(tmp_path), "paimon")
    with pytest.raises(lake.UnsupportedError, match="is a system table, which is read-only"):
        delete.run(shop.request(table="shop.orders$files", where="TRUE"))


def test_all_rows_are_chosen_by_true(tmp_path):
    shop = Shop(str(tmp_path), "mixed")
    typed = DeleteRequest(**shop.request(where="TRUE"))
    assert delete.run(typed)["report"]["rows"] == 4
    assert shop.names() == {}
