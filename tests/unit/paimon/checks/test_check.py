"""``table.check()``: promises about rows, of the published table or of staged results."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from random import Random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.paimon.options import TableOptions
from lakeformat.tables.row_checks.repeated_values import RepeatedValues
from lakeformat.types.type_text import parse_type
from lakeformat.types.types import DataField
from tests.sampling import SEED

COLUMNS = [("id", "BIGINT"), ("status", "STRING"), ("amount", "INT"), ("day", "DATE")]
WITH_KEY = [("id", "BIGINT NOT NULL"), *COLUMNS[1:]]
DAY = date(2024, 1, 31)
NOW = 1_706_745_600_000  # 2024-02-01


@pytest.fixture
def orders(catalog):
    return catalog.create_table("shop.orders", COLUMNS)


def rows(*given):
    """Rows as ``(id, status, amount)``, all of one day."""
    ids, statuses, amounts = zip(*given, strict=True) if given else ((), (), ())
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "status": pa.array(statuses, pa.string()),
            "amount": pa.array(amounts, pa.int32()),
            "day": pa.array([DAY] * len(ids), pa.date32()),
        }
    )


def stage(table, data, kinds=None):
    with table.new_writer() as writer:
        writer.write(data, kinds)
        result = table.staged.add(writer.prepare())
    return table.staged.address(result.name)


def only(report):
    [result] = report.checks
    return result


def finding(table, **checks):
    return only(table.check(**checks)).finding


def test_a_check_that_passes_says_so_with_numbers(orders):
    orders.write(rows((1, "new", 5), (2, "paid", 7)))
    report = orders.check(min_rows=1, not_null=["id"], unique=["id"])
    assert [(each.name, each.outcome) for each in report.checks] == [
        ("rows", "passed"),
        ("not_null(id)", "passed"),
        ("unique(id)", "passed"),
    ]
    assert report.reason == "3 checks of 2 rows passed"
    assert (report.rows, report.snapshot_id, report.failed) == (2, 1, ())


def test_a_failed_check_names_bad_rows_with_their_first_column(orders):
    orders.write(rows((1, None, 5), (2, "paied", None), (None, "new", -1)))
    assert finding(orders, not_null=["id"]) == "1 of 3 rows has a null, such as id=NULL"
    assert (
        finding(orders, not_null=["status"]) == "1 of 3 rows has a null, such as id=1, status=NULL"
    )
    assert (
        finding(orders, accepted_values={"status": ["new", "paid"]})
        == "1 of 3 rows has a value other than 'new', 'paid', such as id=2, status='paied'"
    )
    assert (
        finding(orders, conditions=["amount >= 0"])
        == "1 of 3 rows does not meet the condition, such as id=NULL, amount=-1"
    )


def test_examples_of_a_keyed_table_show_its_key(keyed_table):
    table = keyed_table(WITH_KEY)
    table.write(rows(*((number, "?", 1) for number in range(10, 20))))
    found = only(table.check(accepted_values={"status": ["new"]}))
    assert found.bad_rows == 10
    assert len(found.examples) == 3
    assert all(each.startswith("id=1") and each.endswith("status='?'") for each in found.examples)


def test_the_number_of_rows_has_two_limits(orders):
    orders.write(rows((1, "new", 5)))
    assert finding(orders, min_rows=2) == "1 row, expected at least 2"
    assert finding(orders, min_rows=2, max_rows=9) == "1 row, expected at least 2 and at most 9"
    assert only(orders.check(max_rows=1)).outcome == "passed"
    assert only(orders.check(max_rows=0)).outcome == "failed"


def test_repeated_values_count_every_row_that_shares_them(orders):
    orders.write(rows((1, "new", 5), (1, "new", 6), (2, "new", 5), (None, "a", 1)))
    orders.write(rows((1, "paid", 5), (None, "b", 1)))
    found = only(orders.check(unique=["id"]))
    assert (found.bad_rows, found.examples) == (3, ("id=1",))
    found = only(orders.check(unique=[["id", "status"]]))
    assert (found.name, found.bad_rows) == ("unique(id, status)", 2)
    assert found.examples == ("id=1, status='new'",)


def test_freshness_is_the_age_of_the_newest_time(tmp_path):
    environment = Environment(now_millis=lambda: NOW + 3_600_000)
    catalog = lake.open_catalog(str(tmp_path), environment=environment)
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", COLUMNS)
    orders.write(rows((1, "new", 5)))
    found = only(orders.check(freshness={"day": "1 d"}))
    assert (found.outcome, found.columns) == ("failed", ("day",))
    assert found.finding == (
        "the newest time is 2024-01-31 00:00:00.000Z, 1 d ago; at most 1 d is allowed"
    )
    assert only(orders.check(freshness={"day": timedelta(hours=25)})).outcome == "passed"


def test_freshness_reads_times_of_every_unit(catalog):
    kinds = ("TIMESTAMP(0)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)")
    table = catalog.create_table("shop.times", [(f"t{n}", k) for n, k in enumerate(kinds)])
    at = datetime(2024, 1, 31, 10, tzinfo=UTC)
    table.write(
        pa.Table.from_pylist([{f"t{n}": at for n in range(len(kinds))}]).cast(table.scan().schema)
    )
    for number in range(len(kinds)):
        found = finding(table, freshness={f"t{number}": "1 d"})
        assert found.startswith("the newest time is 2024-01-31 10:00:00.000Z, ")


def test_freshness_without_a_time_fails(orders):
    orders.write(rows())
    assert finding(orders, freshness={"day": "1 d"}) == "no row has a time; at most 1 d is allowed"


def test_nulls_break_only_not_null(orders):
    orders.write(rows((None, None, None), (None, None, None)))
    report = orders.check(
        unique=["id"], accepted_values={"status": ["new"]}, conditions=["amount > 0"]
    )
    assert report.failed == ()


@pytest.mark.parametrize(
    "condition",
    [
        "amount < 3000000000",
        "amount <> 1.5",
        "amount NOT IN (1.5)",
        "amount BETWEEN 0 AND 1e10",
        "NOT amount = 1.5",
        "NOT amount > 3000000000",
    ],
)
def test_nulls_are_unknown_also_beside_a_number_that_the_column_cannot_have(orders, condition):
    orders.write(rows((1, "new", 5), (2, "new", None)))
    assert orders.check(conditions=[condition]).failed == ()
    assert orders.check(conditions=[f"NOT ({condition})"]).checks[0].bad_rows == 1
    assert orders.scan(where=condition).to_arrow()["id"].to_pylist() == [1]
    assert orders.scan(where=f"NOT ({condition})").count() == 0


@pytest.mark.parametrize(("values", "bad_rows"), [(["new", None], 1), ([None], 2), ([], 2)])
def test_a_null_among_the_accepted_values_accepts_no_other_value(orders, values, bad_rows):
    orders.write(rows((1, "new", 5), (2, "old", 5), (3, None, 5)))
    assert only(orders.check(accepted_values={"status": values})).bad_rows == bad_rows


def test_a_check_may_only_warn_by_its_name_or_its_kind(orders):
    orders.write(rows((1, None, -5), (1, "new", 5)))
    checks = {"not_null": ["status"], "unique": ["id"], "conditions": ["amount >= 0"]}
    report = orders.check(**checks, warn_only=["unique", "not_null(status)"])
    assert [each.outcome for each in report.checks] == ["warned", "warned", "failed"]
    assert report.reason == "2 rows: 3 checks, 1 failed, 2 warned"


def test_where_restricts_all_checks(orders):
    orders.write(rows((1, "new", 5), (1, "old", -5)))
    report = orders.check(
        where="status = 'new'", max_rows=1, unique=["id"], conditions=["amount >= 0"]
    )
    assert (report.rows, report.failed) == (1, ())


def test_staged_rows_are_checked_before_a_reader_sees_them(orders):
    orders.write(rows((1, "bad", -1)))
    address = stage(orders, rows((2, "new", 5), (3, None, 6)))
    report = orders.check(staged=[address], not_null=["status"], conditions=["amount >= 0"])
    assert [each.bad_rows for each in report.checks] == [1, 0]
    assert (report.rows, report.staged, orders.scan().count()) == (2, (address,), 1)
    assert report.reason == "2 staged rows: 2 checks, 1 failed"


def test_staged_rows_of_a_table_without_snapshots_are_checked(orders):
    address = stage(orders, rows((2, "new", 5), (2, "new", 6)))
    report = orders.check(staged=[address], min_rows=2, unique=["id"])
    assert [each.bad_rows for each in report.checks] == [0, 2]
    assert report.snapshot_id is None


def test_several_staged_results_are_checked_together(orders):
    addresses = [stage(orders, rows((number % 2, "new", 5))) for number in range(3)]
    report = orders.check(staged=addresses, min_rows=3, unique=["id"])
    assert [each.bad_rows for each in report.checks] == [0, 2]


def test_staged_values_must_be_unique_in_the_table_after_the_commit(orders):
    orders.write(rows((1, "new", 5)))
    found = only(orders.check(staged=[stage(orders, rows((1, "new", 6)))], unique=["id"]))
    assert (found.bad_rows, found.examples) == (2, ("id=1",))


def test_a_staged_row_replaces_the_row_of_its_key_before_values_are_compared(keyed_table):
    table = keyed_table(WITH_KEY)
    table.write(rows((1, "mine", 5), (2, "yours", 5)))
    moved = stage(table, rows((1, "other", 5), (3, "mine", 5)))
    assert only(table.check(staged=[moved], unique=["status"])).bad_rows == 0
    taken = stage(table, rows((4, "yours", 5)))
    assert only(table.check(staged=[taken], unique=["status"])).bad_rows == 2


def test_rows_that_the_commit_replaces_are_no_repetition_even_if_they_were_compacted(orders):
    for _ in range(2):
        stage(orders, rows((1, "mine", 5)))
    first = [message for each in orders.staged.list() for message in each.messages]
    orders.commit(first, commit=lake.CommitId("run", 1))
    orders.compact(strategy="full")
    again = stage(orders, rows((1, "yours", 5)))
    assert only(orders.check(staged=[again], replaces=1, unique=["id"])).bad_rows == 0
    assert only(orders.check(staged=[again], unique=["id"])).bad_rows == 3


def test_staged_deletes_count_for_the_table_after_the_commit(keyed_table):
    table = keyed_table(WITH_KEY)
    table.write(rows((1, "mine", 5)))
    address = stage(table, rows((1, "mine", 5), (2, "mine", 5)), ["-D", "+I"])
    report = table.check(staged=[address], max_rows=1, unique=["status"])
    assert (report.rows, report.failed) == (1, ())


def test_a_primary_key_is_unique_without_reading_a_row(keyed_table):
    table = keyed_table(WITH_KEY)
    address = stage(table, rows((1, "mine", 5), (1, "mine", 6)))
    report = table.check(staged=[address], unique=["id", ["id", "status"]])
    assert report.failed == ()


@pytest.mark.parametrize(
    "options",
    [
        {"merge_engine": "first-row"},
        {"deletion_vectors.enabled": "true"},
        {"bucket": "-2"},
        {"bucket": "-1"},
    ],
)
def test_rows_that_a_compaction_would_show_are_checked_too(keyed_table, options):
    table = keyed_table(WITH_KEY, **options)
    address = stage(table, rows((1, "mine", 5), (2, "mine", None)))
    report = table.check(staged=[address], min_rows=2, unique=["status"], not_null=["amount"])
    assert [each.bad_rows for each in report.checks] == [0, 1, 2]


def test_nulls_of_a_partial_update_are_no_values(keyed_table):
    table = keyed_table(WITH_KEY, merge_engine="partial-update")
    address = stage(table, rows((1, None, 5)))
    assert table.check(staged=[address], not_null=["id"]).failed == ()
    with pytest.raises(lake.UnsupportedError, match="leave out 'staged'"):
        table.check(staged=[address], not_null=["status"])
    table.staged.publish([address])
    assert only(table.check(not_null=["status"])).bad_rows == 1


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ({}, "no check was given"),
        ({"not_null": ["satus"]}, "did you mean 'status'"),
        ({"unique": [["id", "sum"]]}, "a check names 'sum'"),
        ({"unique": ["id", ["id"]]}, "unique.id. is given twice"),
        ({"accepted_values": {"amount": ["many"]}}, "'many' is not a value of column 'amount'"),
        ({"freshness": {"status": "1 d"}}, "needs a DATE or TIMESTAMP column"),
        ({"freshness": {"day": "soon"}}, "must be an age such as '1 d'"),
        ({"conditions": ["amuont > 1"]}, "did you mean 'amount'"),
        ({"min_rows": 2, "max_rows": 1}, "no table can pass both checks"),
        ({"min_rows": 1, "warn_only": ["row"]}, "did you mean 'rows'"),
        ({"min_rows": 1, "staged": ["elsewhere"]}, "is not a staged result"),
    ],
)
def test_a_check_that_means_nothing_is_refused_with_the_name_that_was_meant(
    orders, checks, message
):
    with pytest.raises(lake.InvalidRequestError, match=message):
        orders.check(**checks)


def test_values_of_secret_columns_are_never_shown(catalog):
    table = catalog.create_table("shop.users", [("id", "INT"), ("api_token", "STRING")])
    table.write(pa.table({"id": [1, 2], "api_token": ["hush", "hush"]}))
    report = table.check(unique=["api_token"], accepted_values={"api_token": ["x"]})
    assert "hush" not in str(report.to_dict())
    assert report.checks[0].examples == ("api_token=***",)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["INT", "STRING", "DOUBLE", "DECIMAL(30, 2)", "TIMESTAMP(3)"])
def test_repeated_values_are_found_in_little_memory(kind):
    random = Random(SEED)
    columns = [DataField(0, "a", parse_type(kind)), DataField(1, "b", parse_type("STRING"))]
    found = RepeatedValues(columns, TableOptions({"write-buffer-size": "4 kb"}))
    counts: Counter = Counter()
    for _ in range(10):
        numbers = [random.choice([None, *range(400)]) for _ in range(50)]
        texts = [random.choice([None, "", "x", "a long text " * 3]) for _ in numbers]
        first = pa.array(numbers, pa.int32()).cast(pa.int64())
        first = first.cast(pa.string()) if kind == "STRING" else first.cast(_arrow(kind))
        found.add(pa.RecordBatch.from_arrays([first, pa.array(texts)], names=["a", "b"]))
        counts.update(
            (one, other)
            for one, other in zip(numbers, texts, strict=True)
            if one is not None and other is not None
        )
    found.finish()
    assert found.repeated_rows == sum(count for count in counts.values() if count > 1)


def _arrow(kind):
    kinds = {"INT": pa.int32(), "DOUBLE": pa.float64(), "TIMESTAMP(3)": pa.timestamp("ms")}
    return kinds.get(kind, pa.decimal128(30, 2))
