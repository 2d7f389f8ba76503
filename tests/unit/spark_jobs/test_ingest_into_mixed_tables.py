"""The ingest job applies change messages and files to Mixed tables, each batch once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.ingest import run
from tests.unit.spark_jobs.messages import ONE_STORY, debezium
from tests.unit.spark_jobs.test_change_messages_on_iceberg import LAST

COLUMNS = [("sku", "STRING NOT NULL"), ("pieces", "INT")]


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    catalog = lake.open_catalog(str(tmp_path / "warehouse"), format="iceberg")
    catalog.create_database("shop")
    made = catalog.create_table("shop.stock", COLUMNS, format="mixed", primary_key=["sku"])
    assert isinstance(made, lake.MixedTable)
    return made


def ingest(tmp_path: Path, form: str, **more: Any) -> dict[str, Any]:
    return run(
        {
            "warehouse": str(tmp_path / "warehouse"),
            "catalog_options": {"format": "iceberg"},
            "table": "shop.stock",
            "source": str(tmp_path / "in" / "*"),
            "format": form,
            **more,
        }
    )


def put(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / name).write_text(text)


def rows(table: lake.MixedTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(each.values()) for each in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("form", ["debezium", "canal", "maxwell"])
def test_change_messages_are_applied_by_the_key_of_the_table_once(table, tmp_path, form):
    lines = (each if isinstance(each, str) else json.dumps(each) for each in ONE_STORY[form])
    put(tmp_path, "a.json", "\n".join(lines) + "\n")
    commit = {"commit_user": "dag-run", "commit_identifier": 1}
    first = ingest(tmp_path, f"{form}-json", **commit)
    again = ingest(tmp_path, f"{form}-json", **commit)
    assert rows(table) == LAST
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["snapshot_id"] == again["snapshot_id"]
    assert len(table.snapshots()) == 1


def test_a_new_column_of_messages_is_added_to_both_stores(table, tmp_path):
    put(tmp_path, "a.json", json.dumps(debezium("c", None, {"sku": "fig", "colour": "red"})))
    ingest(tmp_path, "debezium-json")
    assert rows(table) == [("fig", None, "red")]


def test_new_files_of_a_stream_are_ingested_once_and_replace_rows_of_their_keys(table, tmp_path):
    where = {"checkpoint": str(tmp_path / "checkpoint")}
    put(tmp_path, "1.csv", "sku,pieces\nfig,1\nkiwi,2\n")
    ingest(tmp_path, "csv", **where)
    put(tmp_path, "2.csv", "sku,pieces\nfig,9\n")
    ingest(tmp_path, "csv", **where)
    again = ingest(tmp_path, "csv", **where)
    assert rows(table) == [("fig", 9), ("kiwi", 2)]
    assert len(table.snapshots()) == 2
    assert again["snapshot_id"] is None


def test_an_overwrite_replaces_the_rows_of_the_table(table, tmp_path):
    put(tmp_path, "1.csv", "sku,pieces\nfig,1\nkiwi,2\n")
    ingest(tmp_path, "csv")
    (tmp_path / "in/1.csv").unlink()
    put(tmp_path, "2.csv", "sku,pieces\nfig,9\n")
    ingest(tmp_path, "csv", overwrite="table")
    assert rows(table) == [("fig", 9)]


def test_a_job_in_transaction_order_keeps_what_a_stream_changed_since_it_began(
    table, tmp_path, monkeypatch
):
    """The stream writes after the batch of the job has begun, and before it commits."""
    put(tmp_path, "1.csv", "sku,pieces\nfig,1\nkiwi,2\n")
    write = lake.MixedTable.write

    def write_slowly(self: lake.MixedTable, data: Any, *given: Any, **named: Any) -> Any:
        def beside_a_stream() -> Any:
            write(table, pa.table({"sku": ["fig"], "pieces": pa.array([9], pa.int32())}))
            yield from data

        return write(self, beside_a_stream(), *given, **named)

    monkeypatch.setattr(lake.MixedTable, "write", write_slowly)
    ingest(tmp_path, "csv", conflict="transaction-order")
    assert rows(table) == [("fig", 9), ("kiwi", 2)]
    ingest(tmp_path, "csv", overwrite="table")
    assert rows(table) == [("fig", 9), ("kiwi", 2)]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"conflict": "optimistic"}, "key 'conflict' needs key 'read_snapshot'"),
        ({"read_snapshot": "main/1.0"}, "does not take read_snapshot: leave it out, because"),
        (
            {"engine": "spark", "read_snapshot": "main/1.0"},
            "does not take read_snapshot: leave it out, because",
        ),
        (
            {"conflict": "transaction-order", "checkpoint": "seen"},
            "'conflict' and 'checkpoint' exclude each other",
        ),
        (
            {"conflict": "transaction-order", "form": "canal-json"},
            "key 'conflict' has no effect on change messages",
        ),
    ],
)
def test_keys_that_a_batch_of_a_mixed_table_lacks_are_refused(table, tmp_path, more, message):
    put(tmp_path, "1.csv", "sku,pieces\nfig,1\n")
    with pytest.raises(lake.LakeError, match=message):
        ingest(tmp_path, **{"form": "csv", **more})
    assert table.snapshots() == []


def test_staged_results_are_refused_by_name(table, tmp_path):
    put(tmp_path, "1.csv", "sku,pieces\nfig,1\n")
    with pytest.raises(lake.UnsupportedError, match="has no operation 'staged': table"):
        ingest(tmp_path, "csv", stage=True)
    assert table.snapshots() == []
