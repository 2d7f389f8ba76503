"""A call with an argument that a function lacks is answered with the nearest one, everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
TAKES_ANY = {"given_arguments", "require_arguments", "explain_empty_choice"}
"""Methods whose keyword arguments are those of another call."""
PARTS = ("tags", "branches", "consumers", "staged")


def opened(tmp_path, kind: str) -> tuple[Any, Any]:
    """An empty catalog and a table in it."""
    catalog = lake.open_catalog(str(tmp_path), format="paimon" if kind == "paimon" else "iceberg")
    catalog.create_database("shop")
    of_kind = {"format": "mixed", "primary_key": ["id"]} if kind == "mixed" else {}
    return catalog, catalog.create_table("shop.orders", COLUMNS, **of_kind)


def methods(*objects: object) -> Iterator[Callable[..., object]]:
    for each in objects:
        for name in dir(type(each)):
            static = inspect.getattr_static(type(each), name)
            if inspect.isfunction(static) and name[0] != "_" and name not in TAKES_ANY:
                yield getattr(each, name)


def objects_of(catalog: Any, table: Any) -> Iterator[object]:
    yield from (catalog, table)
    for name in PARTS:
        if name in table.operations:
            yield getattr(table, name)


def functions() -> Iterator[Callable[..., object]]:
    public = ((name, getattr(lake, name)) for name in lake.__all__)
    return (each for name, each in public if inspect.isfunction(each) and name != "col")


def refused(function: Callable[..., object]) -> None:
    every = inspect.signature(function).parameters.values()
    needed = [each for each in every if each.default is each.empty]
    by_place = [None for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = {each.name: None for each in needed if each.kind is each.KEYWORD_ONLY}
    with pytest.raises(lake.InvalidRequestError, match="'nix'"):
        function(*by_place, **by_name, nix=1)


@pytest.mark.parametrize("kind", ["paimon", "iceberg", "mixed"])
def test_an_unknown_argument_of_a_method_is_refused_by_name(tmp_path, kind):
    for function in methods(*objects_of(*opened(tmp_path, kind))):
        refused(function)


@pytest.mark.parametrize("kind", ["paimon", "iceberg"])
def test_an_unknown_argument_of_a_writer_is_refused_by_name(tmp_path, kind):
    with opened(tmp_path, kind)[1].new_writer() as writer:
        refused(writer.write)


def test_an_unknown_argument_of_a_batch_is_refused_by_name(tmp_path):
    with opened(tmp_path, "mixed")[1].begin() as batch:
        for function in methods(batch):
            refused(function)


def test_an_unknown_argument_of_a_function_is_refused_by_name():
    for function in functions():
        refused(function)


def test_the_nearest_argument_is_offered(tmp_path):
    _, table = opened(tmp_path, "iceberg")
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'snapshot'"):
        table.tags.create("v1", snapshto=1)
    with pytest.raises(lake.InvalidRequestError, match="did you mean 'metastore'"):
        lake.open_catalog(str(tmp_path), metastor="sql")


def test_an_argument_that_is_given_twice_is_named(tmp_path):
    _, table = opened(tmp_path, "iceberg")
    with pytest.raises(
        lake.InvalidRequestError, match=r"'where' twice, by position and by name. .* where, set"
    ):
        table.update({"id": 1}, where="id = 1")


def test_an_error_inside_of_a_call_is_not_hidden(tmp_path):
    _, table = opened(tmp_path, "paimon")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        table.write()


@pytest.mark.parametrize("kind", ["iceberg", "mixed"])
def test_an_argument_of_other_formats_is_refused_with_the_table_and_advice(tmp_path, kind):
    _, table = opened(tmp_path, kind)
    rows = pa.table({"id": [1]})
    for call, name in (
        (lambda: table.write(rows, watermark=1), "write does not take watermark: keep"),
        (lambda: table.compact(buckets=[0]), "compact does not take buckets: "),
        (lambda: table.expire_snapshots(limit=1), "expire_snapshots does not take limit: leave"),
        (lambda: table.remove_orphans(external_paths=True), "does not take external_paths: "),
    ):
        with pytest.raises(lake.UnsupportedError, match=name) as refusal:
            call()
        assert str(refusal.value).startswith(f"{table.location} is {table.kind}, whose ")
        # A database may have Mixed tables beside those for which the argument is given.
        assert (refusal.value.lacks is None) == (kind == "iceberg")
    assert table.write(rows, watermark=None).snapshot_id is not None
