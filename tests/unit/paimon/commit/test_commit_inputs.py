"""Wrong inputs of a commit: no messages, messages of other tables, different messages."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.paper import commit, file, message, paper_table

ROWS = pa.table({"id": [1, 2]})
IDENTITY = lake.CommitId("run", 1)


@pytest.fixture
def orders(catalog) -> lake.Table:
    return catalog.create_table("shop.orders", [("id", "BIGINT")])


def prepared(table: lake.Table, rows: pa.Table = ROWS) -> list[lake.CommitMessage]:
    writer = table.new_writer()
    writer.write(rows)
    return writer.prepare()


class TestMessages:
    """Any iterable of messages, and nothing else."""

    @pytest.mark.parametrize("overwrite", [None, {}])
    def test_an_iterator_is_read_once(self, orders, overwrite):
        orders.write(ROWS)
        orders.commit(iter(prepared(orders)), overwrite=overwrite, commit=IDENTITY)
        assert orders.scan().count() == (4 if overwrite is None else 2)

    @pytest.mark.parametrize("action", ["commit", "abort"])
    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            (lambda messages: None, "Got NoneType"),
            (lambda messages: messages[0], "Got CommitMessage"),
            (lambda messages: messages[0].to_bytes(), r"Got [\d,]+ bytes"),
            (lambda messages: [messages[0].to_bytes()], r"Got [\d,]+ bytes"),
            (lambda messages: [None], "Got NoneType"),
        ],
    )
    def test_what_is_none_is_refused_with_what_to_pass(self, orders, given, shown, action):
        messages = prepared(orders)
        with pytest.raises(lake.InvalidRequestError, match=rf"pass a list of .* {shown}"):
            getattr(orders, action)(given(messages))
        assert orders.latest_snapshot() is None


class TestOtherBranches:
    """Branches number their schemas each for itself: one number, two sets of columns."""

    @pytest.fixture
    def main(self, catalog, orders, tmp_path) -> lake.Table:
        schemas = tmp_path / "shop.db" / "orders" / "schema"
        shutil.copytree(schemas, schemas.parent / "branch" / "branch-dev" / "schema")
        return orders

    def test_messages_are_taken_where_the_schema_is_the_same(self, catalog, main):
        main.commit(prepared(catalog.table("shop.orders$branch_dev")))
        assert main.scan().count() == 2

    def test_messages_are_refused_where_it_is_another(self, catalog, main):
        catalog.alter_table("shop.orders$branch_dev", lake.add_column("note", "STRING"))
        main = catalog.alter_table("shop.orders", lake.add_column("price", "INT"))
        dev = catalog.table("shop.orders$branch_dev")
        messages = prepared(dev)
        says = "on branch 'dev'.*this is branch 'main' of .*: schema 1 differs between the branches"
        with pytest.raises(lake.InvalidRequestError, match=says):
            main.commit(messages)
        with pytest.raises(lake.InvalidRequestError, match=f"cannot be aborted: .*{says}"):
            main.abort(messages)
        dev.commit(messages)
        assert (main.scan().count(), dev.scan().count()) == (0, 2)


class TestReplays:
    """One identity names one commit; what comes with it again is compared."""

    def test_other_files_with_as_many_rows_are_counted_and_can_be_given_up(self, orders, tmp_path):
        orders.commit(prepared(orders), commit=IDENTITY)
        again = prepared(orders)
        report = orders.commit(again, commit=IDENTITY)
        assert (report.replayed, report.unpublished_files) == (True, 1)
        assert report.reason == (
            "already published as snapshot 1. 1 file of these messages is not part of that "
            "snapshot: discard the messages with Table.abort"
        )
        assert orders.abort(again) == []
        assert (orders.scan().count(), len(list(tmp_path.rglob("*.parquet")))) == (2, 1)

    def test_the_same_files_are_counted_as_published(self, orders):
        messages = prepared(orders)
        orders.commit(messages, commit=IDENTITY)
        assert orders.commit(messages, commit=IDENTITY).unpublished_files == 0

    def test_an_overwrite_with_another_number_of_rows_is_refused(self, orders):
        orders.write(ROWS)
        orders.commit(prepared(orders), overwrite={}, commit=IDENTITY)
        other = prepared(orders, ROWS.slice(1))
        with pytest.raises(lake.InvalidRequestError, match="with 2 rows, but this attempt has 1"):
            orders.commit(other, overwrite={}, commit=IDENTITY)

    def test_files_of_which_some_were_published_are_another_commit(self):
        orders = paper_table()
        commit(orders, message(orders, file("a"), file("b")), user="run")
        with pytest.raises(lake.InvalidRequestError, match=r"without c \(the table, bucket 0\)"):
            commit(orders, message(orders, file("a"), file("c")), user="run")

    def test_rows_are_counted_where_they_need_not_be_read(self, orders, tmp_path):
        orders.write(ROWS, commit=IDENTITY)
        with pytest.raises(lake.InvalidRequestError, match="with 2 rows, but this attempt has 1"):
            orders.write(ROWS.slice(1), commit=IDENTITY)
        assert orders.write(iter(ROWS.slice(1).to_batches()), commit=IDENTITY).replayed
        assert len(list(tmp_path.rglob("*.parquet"))) == 1


class TestGivingUp:
    """Files that were not found are not reported as removed."""

    def test_messages_of_another_table(self, catalog, orders, tmp_path):
        other = catalog.create_table("shop.other", [("id", "BIGINT")])
        messages = prepared(orders)
        with pytest.raises(lake.InvalidRequestError) as refused:
            other.abort(messages)
        assert "no file of these messages is in" in str(refused.value)
        assert f"written for {orders.location}" in str(refused.value)
        assert len(list(tmp_path.rglob("*.parquet"))) == 1

    def test_files_that_are_gone_do_not_keep_the_others(self, orders, tmp_path):
        messages = [*prepared(orders), *prepared(orders)]
        next(tmp_path.rglob("*.parquet")).unlink()
        assert orders.abort(messages) == []
        assert list(tmp_path.rglob("*.parquet")) == []

    def test_published_rows_are_not_given_up_and_the_advice_is_how_rows_go(self, orders):
        messages = prepared(orders)
        orders.commit(messages)
        with pytest.raises(lake.InvalidRequestError) as refused:
            orders.abort(messages)
        assert "Table.truncate" in str(refused.value)
        assert "CommitId" not in str(refused.value)


def test_the_table_a_message_is_of_is_named_beside_the_one_it_came_to(catalog, orders):
    other = catalog.create_table("shop.other", [("id", "BIGINT")])
    messages = prepared(orders)
    with pytest.raises(lake.InvalidRequestError) as refused:
        other.commit(messages)
    assert f"the message (prepared for {orders.location}" in str(refused.value)
    assert f"belongs to another table than {other.location}" in str(refused.value)


def test_a_watermark_without_a_row_is_said_to_be_kept_nowhere(orders):
    report = orders.commit([], watermark=9, properties={"job": "nightly"})
    assert "the call did not store the watermark 9 or the properties" in report.reason
    assert orders.commit([]).reason == "no rows to commit, so no snapshot was published"


def test_a_scan_says_which_snapshot_it_reads(orders):
    empty = orders.scan()
    orders.write(ROWS)
    assert (empty.snapshot_id, orders.scan().snapshot_id) == (0, 1)
    with pytest.raises(lake.CommitConflictError, match="computed from snapshot 0"):
        orders.write(ROWS, overwrite={}, read_snapshot=empty.snapshot_id)
    read = orders.scan()
    assert orders.write(ROWS, overwrite={}, read_snapshot=read.snapshot_id).snapshot_id == 2


@pytest.mark.parametrize("given", [lambda read: read, str, lambda read: read.number])
def test_the_snapshot_that_was_read_is_a_position_its_text_or_a_number(orders, given):
    orders.write(ROWS)
    read = orders.position()
    orders.write(ROWS, overwrite={}, read_snapshot=given(read))
    with pytest.raises(lake.CommitConflictError, match="computed from snapshot 1"):
        orders.write(ROWS, overwrite={}, read_snapshot=given(read))
    assert orders.truncate(read_snapshot=given(orders.position())).snapshot_id == 3


def test_a_position_that_was_read_is_refused_if_a_rollback_replaced_its_snapshot(orders):
    for _ in range(2):
        orders.write(ROWS)
    read = orders.position()
    orders.rollback(snapshot=1, as_latest=False)
    for newest in (2, 3):
        assert orders.write(ROWS).snapshot_id == newest
        with pytest.raises(lake.CommitConflictError, match="a rollback has replaced that snapshot"):
            orders.write(ROWS, overwrite={}, read_snapshot=str(read))
    assert len(orders.scan().to_arrow()) == 3 * len(ROWS)


def test_a_position_of_another_branch_and_other_texts_are_no_read_snapshot(orders):
    for wrong in ("side/1", "newest"):
        with pytest.raises(lake.InvalidRequestError, match=r"position|histories"):
            orders.write(ROWS, overwrite={}, read_snapshot=wrong)
