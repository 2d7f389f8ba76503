"""``profile="mixed"``: a bundle of options for a stream and batches on one Paimon table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from spark_jobs.ingest import run
from tests.lake_command import lake_says

COLUMNS = [("id", "BIGINT"), ("n", "BIGINT"), ("name", "STRING")]
BUNDLE = {
    "merge-engine": "deduplicate",
    "changelog-producer": "lookup",
    "deletion-vectors.enabled": "true",
    "bucket": "-1",
    "metadata.iceberg.storage": "table-location",
    "metadata.iceberg.format-version": "2",
    "write.conflict": "transaction-order",
}


@pytest.fixture
def catalog(tmp_path: Path) -> lake.Catalog:
    found = lake.open_catalog(str(tmp_path / "warehouse"))
    found.create_database("db")
    return found


def created(catalog: lake.Catalog, **more: Any) -> lake.Table:
    given = {"primary_key": ["id"], "profile": "mixed", **more}
    return catalog.create_table("db.t", given.pop("columns", COLUMNS), **given)


def rows(**names: tuple[int | None, str | None]) -> pa.Table:
    """Rows by their id, such as ``_7=(70, "seven")``."""
    ids = [int(each[1:]) for each in names]
    numbers, texts = zip(*names.values(), strict=True)
    columns = [pa.array(ids), pa.array(numbers, pa.int64()), pa.array(texts, pa.string())]
    return pa.table(columns, names=["id", "n", "name"])


def merged(table: lake.Table) -> dict[int, tuple[int | None, str | None]]:
    return by_id(table.scan().to_arrow())


def published(table: lake.Table) -> dict[int, tuple[int | None, str | None]]:
    """The rows that PyIceberg reads."""
    directory = Path(table.location.removeprefix("file://")) / "metadata"
    newest = max(directory.glob("v*.metadata.json"), key=lambda path: int(path.name[1:11]))
    return by_id(StaticTable.from_metadata(str(newest)).scan().to_arrow())


def by_id(found: pa.Table) -> dict[int, tuple[int | None, str | None]]:
    listed = [(each["id"], (each["n"], each["name"])) for each in found.to_pylist()]
    assert len(dict(listed)) == len(listed)
    return dict(listed)


def test_a_stream_and_a_batch_both_win_and_readers_of_iceberg_see_the_result(catalog):
    table = created(catalog)
    table.write(rows(_1=(1, "join"), _2=(2, "amy")))
    table.compact(strategy="minor")
    before = table.position()
    with table.begin() as begun:
        table.write(rows(_1=(1, "john"), _3=(3, "bob")))
        table.compact(strategy="minor")
        table.write(rows(_1=(0, "old"), _2=(2, "AMY"), _9=(9, "zed")), read_snapshot=begun)
    table.write(rows(_9=(9, "zed")), kinds=["-D"])
    table.compact(strategy="minor")
    expected = {1: (1, "john"), 2: (2, "AMY"), 3: (3, "bob")}
    assert merged(table) == published(table) == expected
    changes = [(e["rowkind"], e["id"]) for e in table.changes(before).to_arrow().to_pylist()]
    assert sorted(changes) == sorted([("-U", 1), ("+U", 1), ("+I", 3), ("-U", 2), ("+U", 2)])
    table.compact(strategy="full")
    assert merged(table) == published(table) == expected


def test_the_table_stores_plain_options_and_given_ones_win(catalog, tmp_path):
    assert dict(created(catalog).schema.options) == BUNDLE
    catalog.drop_table("db.t")
    given = {"bucket": "4", "write.conflict": "optimistic", "metadata.iceberg.storage": "disabled"}
    assert dict(created(catalog, options=given).schema.options) == {**BUNDLE, **given}
    defaults = {"table-default.changelog-producer": "input"}
    other = lake.open_catalog(str(tmp_path / "other"), options=defaults)
    other.create_database("db")
    assert created(other).schema.options["changelog-producer"] == "input"


@pytest.mark.parametrize(
    "more",
    [
        {"options": {"merge-engine": "partial-update"}},
        {"options": {"sequence.field": "n"}},
        {"options": {"bucket": "-2"}},
        {"partition_by": ["name"]},
    ],
    ids=["engine", "sequence", "postponed", "partitions"],
)
def test_a_table_without_an_order_of_transactions_has_no_rule_for_conflicts(more, catalog):
    kept = created(catalog, **more).schema.options
    assert "write.conflict" not in kept
    assert kept["changelog-producer"] == "lookup"


def test_rows_of_one_key_are_aggregated_or_merged_by_column(catalog):
    """Merge processes that users of Mixed tables expect: X15."""
    engines = {
        "aggregation": {"fields.n.aggregate-function": "sum"},
        "partial-update": {},
    }
    expected = {
        "aggregation": {1: (6, "b"), 2: (2, "c")},
        "partial-update": {1: (5, "b"), 2: (2, "c")},
    }
    for engine, more in engines.items():
        table = created(catalog, options={"merge-engine": engine, **more})
        before = table.position()
        table.write(rows(_1=(1, "a"), _2=(2, "c")))
        table.compact(strategy="minor")
        table.write(rows(_1=(5, None)))
        table.write(rows(_1=(None, "b")))
        table.compact(strategy="minor")
        assert merged(table) == published(table) == expected[engine], engine
        changes = table.changes(before).to_arrow().to_pylist()
        assert changes[-1] == {"rowkind": "+U", "id": 1, "n": expected[engine][1][0], "name": "b"}
        catalog.drop_table("db.t")


def test_a_profile_that_does_not_fit_is_refused(catalog):
    for more, reason in (
        ({"profile": "mixt"}, r"profile must be 'mixed', got 'mixt'"),
        ({"primary_key": []}, "is for tables with a primary key"),
        ({"options": {"merge-engine": "first-row"}}, "keeps the first row of each key"),
        ({"options": {"profile": "other"}}, "is 'mixed' and the option 'profile' is 'other'"),
    ):
        with pytest.raises(lake.InvalidRequestError, match=reason):
            created(catalog, **more)
    created(catalog)
    with pytest.raises(lake.InvalidRequestError, match="'profile' cannot be changed"):
        catalog.alter_table("db.t", lake.set_option("profile", "mixed"))


def test_commands_and_jobs_take_the_profile(catalog, tmp_path):
    words = ["--column", "id BIGINT", "--primary-key", "id", "--profile", "mixed"]
    lake_says(catalog, "create-table", "db.c", *words, "--option", "bucket=2")
    assert dict(catalog.table("db.c").schema.options) == {**BUNDLE, "bucket": "2"}
    (tmp_path / "in.csv").write_text("id,name\n1,a\n")
    request = {
        "warehouse": catalog.location,
        "table": "db.j",
        "source": str(tmp_path / "in.csv"),
        "format": "csv",
        "create": True,
        "primary_key": ["id"],
        "table_options": {"profile": "mixed"},
    }
    for _ in range(2):  # the second run compares the request with the table
        run(request)
    assert dict(catalog.table("db.j").schema.options) == BUNDLE
    catalog.alter_table("db.j", lake.set_option("write.conflict", "optimistic"))
    with pytest.raises(lake.InvalidRequestError, match=r"option 'write\.conflict' is 'optimistic'"):
        run(request)
