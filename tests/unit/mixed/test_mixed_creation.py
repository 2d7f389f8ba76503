"""A Mixed table is created whole and as requested, or refused by name before anything is made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog.iceberg.path import PathMetastore
from tests.unit.mixed.edited_stores import edit, newest_metadata

COLUMNS = [("id", "BIGINT"), ("p", "STRING")]
ROWS = pa.table({"id": [1], "p": ["x"]})


@pytest.fixture
def catalog(tmp_path: Path) -> lake.IcebergCatalog:
    found = lake.open_catalog(str(tmp_path), format="iceberg")
    found.create_database("db")
    return found


def created(catalog: lake.IcebergCatalog, name: str = "db.t", **changed: Any) -> Any:
    given = {"format": "mixed", "primary_key": ["id", "p"], "partition_by": ["p"], **changed}
    return catalog.create_table(name, given.pop("columns", COLUMNS), **given)


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"partition_by": ["bucket(4, id)"]}, "partitions"),
        ({"partition_by": []}, "partitions"),
        ({"format_version": 3}, "format version"),
        ({"primary_key": ["p", "id"]}, "properties"),
        ({"options": {"write.upsert.enabled": "false"}}, "properties"),
        ({"columns": [*COLUMNS, ("v", "INT")]}, "columns"),
    ],
)
def test_a_change_store_of_another_table_is_not_completed(changed, difference, catalog, tmp_path):
    created(catalog)
    shutil.rmtree(tmp_path / "db/t")
    with pytest.raises(lake.AlreadyExistsError, match=rf"empty change store .*other {difference}"):
        created(catalog, **changed)
    assert not (tmp_path / "db/t").exists()
    assert created(catalog).write(ROWS).rows == 1


def test_a_write_is_refused_if_the_stores_are_partitioned_differently(catalog, tmp_path):
    table = created(catalog)
    table.write(ROWS)
    fields = [{"field-id": 1000, "name": "id", "source-id": 1, "transform": "identity"}]
    spec = {"spec-id": 1, "fields": fields}
    store = tmp_path / "db/t_change_"
    specs = json.loads(newest_metadata(store).read_text())["partition-specs"]
    edit(store, **{"partition-specs": [*specs, spec], "default-spec-id": 1})
    before = [*tmp_path.rglob("*")]
    with pytest.raises(lake.UnsupportedError, match="by p in the base store, by id in"):
        lake.open_table(str(tmp_path / "db/t")).write(ROWS)
    assert [*tmp_path.rglob("*")] == before


@pytest.mark.parametrize("name", ["a,b", " id", "id ", " "])
def test_a_key_column_that_the_property_cannot_name_is_refused(name, catalog, tmp_path):
    columns = [(name, "BIGINT"), ("a", "BIGINT"), ("b", "BIGINT")]
    with pytest.raises(lake.InvalidRequestError, match="a comma in its name, or a space at"):
        created(
            catalog,
            columns=pa.schema([(each, pa.int64()) for each, _ in columns]),
            primary_key=[name],
            partition_by=[],
        )
    assert [*(tmp_path / "db").iterdir()] == []


def test_a_column_with_the_name_of_the_hidden_one_is_refused(catalog, tmp_path):
    with pytest.raises(lake.InvalidRequestError, match="cannot have a column '_file_offset'"):
        created(catalog, columns=[*COLUMNS, ("_file_offset", "BIGINT")])
    assert [*(tmp_path / "db").iterdir()] == []


def test_another_existing_table_is_not_taken_for_the_one_to_create(catalog):
    catalog.create_table("db.plain", COLUMNS)
    created(catalog)
    for name in ("db.plain", "db.t_change_"):
        with pytest.raises(lake.AlreadyExistsError, match=f"'{name}' exists, .* not a Mixed"):
            created(catalog, name, exist_ok=True)
    with pytest.raises(lake.AlreadyExistsError, match="but is a Mixed table with the key id, p"):
        created(catalog, primary_key=["p"], exist_ok=True)
    assert created(catalog, exist_ok=True).write(ROWS).rows == 1


@pytest.mark.parametrize("table_format", ["iceberg", "mixed"])
@pytest.mark.parametrize(
    "name",
    [
        "mixed-format.table-store",
        "mixed-format.primary-key-fields",
        "mixed-format.change.identifier",
        "lake.renamed-to",
    ],
)
def test_properties_of_a_store_cannot_be_given(name, table_format, catalog, tmp_path):
    key = ["id"] if table_format == "mixed" else []
    with pytest.raises(lake.InvalidRequestError, match=f"the property '{name}' cannot be set"):
        catalog.create_table(
            "db.t", COLUMNS, format=table_format, primary_key=key, options={name: "base"}
        )
    assert [*(tmp_path / "db").iterdir()] == []


def test_a_table_that_another_program_creates_meanwhile_is_opened(catalog, tmp_path, monkeypatch):
    make_table = PathMetastore.make_table

    def after_another(self, name, describe):
        monkeypatch.setattr(PathMetastore, "make_table", make_table)
        created(lake.open_catalog(str(tmp_path), format="iceberg")).write(ROWS)
        return make_table(self, name, describe)

    monkeypatch.setattr(PathMetastore, "make_table", after_another)
    assert created(catalog, exist_ok=True).scan().count() == 1


WRONG_VALUES = pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("change.file-index.hash-bucket", "3", "set it to a power of two"),
        ("base.file-index.hash-bucket", "abc", "not a whole number"),
        ("lake.auto-buckets", "yes", "not true or false"),
        ("self-optimizing.target-size", "1GB", "not a whole number"),
        ("self-optimizing.major.trigger.duplicate-ratio", "-1", "not a number of at least 0"),
        ("self-optimizing.major.trigger.duplicate-ratio", "NaN", "not a number of at least 0"),
        ("self-optimizing.min-target-size-ratio", "Infinity", "not a number of at least 0"),
        ("change.data.ttl.minutes", "-4", "not a whole number"),
        ("snapshot.keep.duration", "7 dys", "not a duration such as '720min'"),
        ("write.format.default", "orc", "only as 'parquet': set it to 'parquet', or leave it out"),
    ],
)


@WRONG_VALUES
def test_a_property_with_which_later_work_would_fail_is_refused(
    name, value, reason, catalog, tmp_path
):
    wrong = pytest.raises(lake.InvalidRequestError, match=f"'{name}' is '?{value}.*{reason}")
    with wrong:
        created(catalog, options={name: value})
    assert [*(tmp_path / "db").iterdir()] == []
    created(catalog)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    with wrong:
        catalog.alter_table("db.t", lake.set_option(name, value))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    catalog.create_table("db.plain", COLUMNS, options={name: value})
    with wrong:
        catalog.adopt_table("db.plain", primary_key=["id", "p"])
    assert not (tmp_path / "db/plain_change_").exists()
