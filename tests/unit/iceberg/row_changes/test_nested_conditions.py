# SPDX-License-Identifier: Apache-2.0
"""Conditions on fields inside of structs: scans, changes, deletes and updates, against a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.errors import InvalidRequestError
from tests.unit.iceberg.made_table import MadeTable

Row = dict[str, Any]
ADDRESS = pa.struct(
    [("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())])), ("zip", pa.int64())]
)
SCHEMA = pa.schema([("id", pa.int64()), ("a", ADDRESS)])


def address(city: str | None, lat: float | None, number: int | None) -> Row:
    return {"city": city, "geo": None if lat is None else {"lat": lat}, "zip": number}


FILES: list[list[Any]] = [
    [address("Bonn", 50.7, 1), address("Rome", 41.9, 2)],
    [address("Rome", 41.9, 3), None],
    [address("Rome", None, 4), address("Rome", float("nan"), 5)],
    [address(None, 48.1, None), address("Wien", 48.2, 6)],
]
MODEL = [
    {"id": 10 * file + place, "a": value}
    for file, values in enumerate(FILES)
    for place, value in enumerate(values)
]


def value_of(row: Row, *path: str) -> Any:
    """The value at a path; None if a struct around it is null."""
    value: Any = row["a"]
    for name in path:
        value = None if value is None else value[name]
    return value


def compared(path: str, check: Callable[[Any], bool]) -> Callable[[Row], bool]:
    """The rows whose value at a path meets a check; a null never does."""

    def meets(row: Row) -> bool:
        value = value_of(row, *path.split("."))
        return value is not None and check(value)

    return meets


CONDITIONS: list[tuple[Any, Callable[[Row], bool]]] = [
    ("a.city = 'Rome'", compared("city", lambda value: value == "Rome")),
    ("NOT a.city = 'Rome'", compared("city", lambda value: value != "Rome")),
    ("a.city IS NULL", lambda row: value_of(row, "city") is None),
    ("a.city IS NOT NULL", compared("city", lambda value: True)),
    ("a.city LIKE 'W%'", compared("city", lambda value: value.startswith("W"))),
    ("a.geo.lat > 45", compared("geo.lat", lambda value: not value <= 45)),
    ("a.geo.lat IS NULL", lambda row: value_of(row, "geo", "lat") is None),
    ("a.geo IS NULL", lambda row: value_of(row, "geo") is None),
    ('"a"."zip" IN (2, 6)', compared("zip", lambda value: value in (2, 6))),
    (lake.col("a.zip") >= 4, compared("zip", lambda value: value >= 4)),
    (
        "a.city = 'Wien' OR (id < 10 AND a.zip = 1)",
        lambda row: value_of(row, "zip") == 1 or value_of(row, "city") == "Wien",
    ),
]
EACH_CONDITION = pytest.mark.parametrize(
    ("where", "meets"), CONDITIONS, ids=lambda each: "" if callable(each) else str(each)
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One file for each list of ``FILES``."""
    catalog = lake.open_catalog(str(tmp_path_factory.mktemp("w")), format="iceberg")
    catalog.create_database("shop")
    made = catalog.create_table("shop.people", SCHEMA, format_version=2)
    for start in range(0, len(MODEL), 2):
        made.write(pa.Table.from_pylist(MODEL[start : start + 2], SCHEMA))
    return made


def ids(rows: Any) -> list[int]:
    return sorted(rows.to_arrow()["id"].to_pylist())


def expected(meets: Callable[[Row], bool]) -> list[int]:
    return [row["id"] for row in MODEL if meets(row)]


@EACH_CONDITION
def test_scans_and_changes_have_the_rows_that_meet_a_condition_inside_of_a_struct(
    table, where, meets
):
    assert ids(table.scan(columns=["id"], where=where)) == expected(meets)
    assert ids(table.changes(0, columns=["id"], where=where)) == expected(meets)


@pytest.mark.sampled(6)
@EACH_CONDITION
def test_deletes_and_updates_change_exactly_these_rows(table, where, meets):
    before = table.latest_snapshot().id
    assert table.update(where, {"id": -1}).rows == len(expected(meets))
    table.rollback(snapshot=before)
    table.delete(where)
    assert ids(table.scan()) == expected(lambda row: not meets(row))
    table.rollback(snapshot=before)


def test_files_are_skipped_by_the_bounds_of_a_field_inside_of_a_struct(table):
    assert table.scan(where="a.city = 'Wien'").explain().files_to_read == 1
    assert table.scan(where="a.geo.lat > 49").explain().files_to_read == 2  # one has a NaN


def test_a_name_that_no_struct_has_is_refused_with_the_nearest_one(table):
    with pytest.raises(InvalidRequestError, match=r"'a\.citty', .* did you mean 'a\.city'"):
        table.scan(where="a.citty = 'Rome'")


@pytest.mark.parametrize("where", ["s.k = 7", "NOT s.k <> 7", "s.k IS NOT NULL"])
def test_rows_with_a_null_struct_are_kept_though_a_writer_counts_no_null(tmp_path, where):
    """Such a writer counts no null of a field where the struct around it is null."""
    inner = {"id": 3, "name": "k", "required": False, "type": "long"}
    made = MadeTable(
        tmp_path / "shop/t", {(1, "id"): "long", (2, "s"): {"type": "struct", "fields": [inner]}}
    )
    field = pa.field("k", pa.int64(), metadata={"PARQUET:field_id": "3"})
    structs = pa.StructArray.from_arrays(
        [pa.array([7, None])], fields=[field], mask=pa.array([False, True])
    )
    path = made.write("d.parquet", id=(1, pa.array([1, 2], pa.int64())), s=(2, structs))
    seven = {3: (7).to_bytes(8, "little")}
    counts = {"null_value_counts": {3: 0}, "lower_bounds": seven, "upper_bounds": seven}
    made.manifest({"file_path": path, "record_count": 2, **counts})
    assert ids(made.commit().scan(where="s.k IS NULL")) == [2]
    table = lake.open_catalog(str(tmp_path), format="iceberg").table("shop.t")
    table.delete(where)
    assert ids(table.scan()) == [2]


def test_a_check_takes_conditions_on_nested_fields(table):
    [result] = table.check(conditions=["a.geo.lat < 50"]).failed
    assert (result.columns, result.bad_rows) == (("a.geo.lat",), 2)


def test_fields_inside_of_lists_and_maps_are_refused_by_name(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    inner = pa.struct([("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64()))])
    table = catalog.create_table("shop.t", pa.schema([("l", pa.list_(pa.int64())), ("s", inner)]))
    for name, kind in (("l.element", "'l' is ARRAY<BIGINT>"), ("s.m.key", "'s.m' is MAP<")):
        with pytest.raises(InvalidRequestError, match=f"{kind}.*inside of lists and maps"):
            table.scan(where=f"{name} = 1")
    with pytest.raises(InvalidRequestError, match=r"'l' is ARRAY<BIGINT>: use IS NULL"):
        table.scan(where="l LIKE 'a%'")
