"""Files that tasks have written become a snapshot, or they go."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

import lakeformat as lake
from spark_jobs.frames.publish import publish


@pytest.fixture
def orders(tmp_path):
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders", pa.schema([pa.field("id", pa.int64(), nullable=False)]), primary_key=["id"]
    )


def written(table):
    with table.new_writer() as writer:
        writer.write([pa.record_batch({"id": [1, 2]}, table.schema.arrow_schema())])
        return writer.prepare()


def refuse(*_given, **_more):
    raise lake.CommitConflictError("somebody else was faster")


def data_files(folder):
    return [path for path in folder.rglob("data-*") if path.is_file()]


def test_the_files_become_a_snapshot(orders):
    assert publish(orders, written(orders)).snapshot_id == 1
    assert orders.scan().to_arrow().num_rows == 2


def test_files_of_a_commit_that_is_refused_go(orders, tmp_path, monkeypatch):
    messages = written(orders)
    monkeypatch.setattr(lake.Table, "commit", refuse)
    with pytest.raises(lake.CommitConflictError, match="somebody else"):
        publish(orders, messages)
    assert data_files(tmp_path) == []


def test_files_of_a_commit_nobody_knows_the_outcome_of_stay(orders, tmp_path, monkeypatch):
    def unknown(*_given, **_more):
        raise lake.CommitOutcomeUnknownError("no answer came")

    messages = written(orders)
    monkeypatch.setattr(lake.Table, "commit", unknown)
    with pytest.raises(lake.CommitOutcomeUnknownError):
        publish(orders, messages)
    assert len(data_files(tmp_path)) == 1


def test_why_a_commit_was_refused_is_told_also_if_its_files_cannot_be_removed(
    orders, monkeypatch, caplog
):
    def fail(*_given):
        raise lake.UnavailableError("no answer came")

    messages = written(orders)
    monkeypatch.setattr(lake.Table, "commit", refuse)
    monkeypatch.setattr(lake.Table, "abort", fail)
    with caplog.at_level(logging.WARNING), pytest.raises(lake.CommitConflictError):
        publish(orders, messages)
    assert "could not be deleted from" in caplog.text
    assert "no answer came" in caplog.text
