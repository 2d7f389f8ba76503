"""A job that may create its table refuses one that differs, and leaves no empty one behind."""

from __future__ import annotations

import pytest

import lakeformat as lake
from spark_jobs import ingest

NEW = {
    "primary_key": ["id", "dt"],
    "partition_by": ["dt"],
    "table_options": {"bucket": 2, "target-file-size": "128 mb"},
}


@pytest.fixture
def land(tmp_path):
    """Ingest the lines of a CSV file into ``shop.orders``, which is created if it is missing."""

    def run(*lines: str, **more) -> dict:
        (tmp_path / "orders.csv").write_text("\n".join(("id,dt", *lines, "")))
        request = {
            "warehouse": tmp_path / "warehouse",
            "table": "shop.orders",
            "source": tmp_path / "orders.csv",
            "create": True,
        }
        return ingest.run({**request, **more})

    return run


@pytest.fixture
def catalog(tmp_path):
    return lake.open_catalog(tmp_path / "warehouse")


def test_a_second_run_with_the_same_request_appends(land, catalog):
    land("1,a", **NEW)
    land("2,a", **NEW, commit_user="second", commit_identifier=0)
    options = {"bucket": "2", "target-file-size": "128MB", "file.format": "parquet"}
    land("3,a", **{**NEW, "table_options": options})

    assert catalog.table("shop.orders").scan().count() == 3


@pytest.mark.parametrize(
    ("change", "both_sides"),
    [
        ({"primary_key": ["dt"]}, r"primary_key is \['id', 'dt'\] in the table and \['dt'\] in"),
        ({"partition_by": []}, r"partition_by is \['dt'\] in the table and \[\] in the request"),
        ({"table_options": {"bucket": 4}}, "option 'bucket' is '2' in the table and '4' in"),
        (
            {"table_options": {"file.format": "orc"}},
            "option 'file.format' is 'parquet' in the table and 'orc' in the request",
        ),
        (
            {"primary_key": None, "table_options": {"primary-key": "id"}},
            r"primary_key is \['id', 'dt'\] in the table and \['id'\] in the request",
        ),
    ],
)
def test_a_table_that_contradicts_the_request_is_refused_with_both_sides(
    land, catalog, change, both_sides
):
    land("1,a", **NEW)

    with pytest.raises(lake.InvalidRequestError, match=both_sides):
        land("2,a", **{**NEW, **change})

    assert catalog.table("shop.orders").scan().count() == 1


@pytest.mark.parametrize("more", [{}, {"checkpoint": "seen"}, {"stage": True}])
def test_a_first_run_that_fails_leaves_no_table(land, catalog, tmp_path, more):
    if "checkpoint" in more:
        more = {"checkpoint": tmp_path / "seen"}
    with pytest.raises(lake.LakeError, match="NOT NULL"):
        land("1,a", ",b", primary_key=["id", "dt"], table_options={"bucket": 1}, **more)
    assert catalog.list_tables("shop") == []

    land("1,a", primary_key=["id"], table_options={"bucket": 1}, **more)
    assert catalog.table("shop.orders").schema.primary_keys == ("id",)


def test_an_empty_table_of_somebody_else_stays(land, catalog):
    catalog.create_database("shop")
    catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("dt", "STRING")],
        primary_key=["id", "dt"],
        options={"bucket": 1},
    )
    with pytest.raises(lake.LakeError, match="NOT NULL"):
        land(",a")
    assert catalog.list_tables("shop") == ["orders"]


def test_a_table_stays_if_the_outcome_of_its_first_commit_is_unknown(land, catalog, monkeypatch):
    def lost(*words, **more):
        raise lake.CommitOutcomeUnknownError("no answer")

    monkeypatch.setattr(lake.Table, "write", lost)
    with pytest.raises(lake.CommitOutcomeUnknownError):
        land("1,a", **NEW)
    assert catalog.list_tables("shop") == ["orders"]
