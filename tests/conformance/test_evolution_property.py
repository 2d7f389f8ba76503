"""Random tables equal a dict model while their columns change between commits.

Each example is a separate table: columns are added, dropped, renamed, moved and widened, kinds may
be a column, some commits overwrite. Rows are read in full, by a condition, with a limit, at every
snapshot, and after a compaction. ``EXAMPLES=3000`` sets the number of tables of each engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from operator import eq, ge, le
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from tests.evolving_scenarios import Stage, evolve, evolving
from tests.golden.values import assert_same_rows, rows_of
from tests.merge_model import MergeModel, ModelError
from tests.merge_scenarios import ENGINES, POOLS, Scenario, loosened
from tests.sampling import count

TABLES = count(7, 60, "EXAMPLES")
FILES: dict[str, dict[str, str]] = {
    "parquet": {},
    "avro": {"file.format": "avro"},
    "orc": {"file.format": "orc"},
    "thin": {"data-file.thin-mode": "true"},
    "many": {"target-file-size": "1 b", "source.split.target-size": "1 b"},
    "without statistics": {"metadata.stats-mode": "none"},
}
OPERATORS: list[Callable[[Any, Any], Any]] = [eq, ge, le]
UNASKED = ("ARRAY", "MAP", "FLOAT", "DOUBLE")
"""Types without conditions here: another test compares floats."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_holds_what_its_commits_make_of_it_while_columns_change(engine: str):
    @settings(
        max_examples=TABLES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )
    @given(evolving(engine), st.sampled_from(list(FILES)), st.data())
    def agrees(made: tuple[Scenario, list[Stage]], files: str, data: st.DataObject) -> None:
        check(*made, FILES[files], data)

    agrees()


def check(
    scenario: Scenario, stages: list[Stage], options: dict[str, str], data: st.DataObject
) -> None:
    """Write the stages to a table and to the model, and compare."""
    model = scenario.model()
    states: dict[int, tuple[Scenario, MergeModel]] = {}
    with new_catalog() as catalog:
        table = replace(scenario, options={**scenario.options, **options}).create(
            catalog, "shop.orders"
        )
        for stage in stages:
            for evolution in stage.evolutions:
                catalog.alter_table("shop.orders", evolution.of_schema())
                evolve(model, evolution)
            table = catalog.table("shop.orders")
            scenario = replace(scenario, columns=stage.columns)
            assert table.schema.column_names == list(stage.columns)
            write(table, model, scenario, stage)
            newest = table.latest_snapshot()
            if newest is not None and newest.id not in states:
                states[newest.id] = scenario, deepcopy(model)
        if model.engine != "first-row":  # which shows nothing before a compaction
            for number, (then, state) in states.items():
                compare(table, then, state, data, snapshot=number)
            compare(table, scenario, model, data)
        if compacts(table, model):
            compare(table, scenario, model, data)


def write(table: lake.Table, model: MergeModel, scenario: Scenario, stage: Stage) -> None:
    """One commit on both sides; where the model refuses, nothing may be published."""
    before = table.latest_snapshot()
    rows = pa.Table.from_pylist([row for _, row in stage.changes], scenario.arrow_schema)
    kinds = None if "op" in stage.columns else [kind for kind, _ in stage.changes]
    overwrite: lake.Overwritten | None = None
    if stage.overwrites:
        overwrite = "dynamic" if scenario.partition_keys else {}
    after = deepcopy(model)
    try:
        if stage.overwrites:
            after.overwrite(stage.changes)
        else:
            after.write(stage.changes)
    except ModelError:
        with pytest.raises(lake.LakeError):
            table.write(rows, kinds, overwrite=overwrite)
        assert table.latest_snapshot() == before
        return
    table.write(rows, kinds, overwrite=overwrite)
    model.runs, model.next_number = after.runs, after.next_number


def compare(
    table: lake.Table,
    scenario: Scenario,
    model: MergeModel,
    data: st.DataObject,
    snapshot: int | None = None,
) -> None:
    """A read of everything, of what meets a condition, and of a few rows."""
    try:
        rows = model.read()
    except ModelError:
        with pytest.raises(lake.LakeError):
            table.scan(snapshot=snapshot).to_arrow()
        return
    wanted = plain(rows, scenario)
    found = plain_of(table.scan(snapshot=snapshot).to_arrow(), scenario)
    assert_same_rows(found, wanted)
    some = table.scan(snapshot=snapshot, limit=2).to_arrow()
    assert some.num_rows == min(2, len(wanted))
    asked = [name for name, kind in scenario.columns.items() if not kind.startswith(UNASKED)]
    if not asked:
        return
    name = data.draw(st.sampled_from(asked))
    value = data.draw(st.sampled_from(pool_of(scenario, name)))
    holds = data.draw(st.sampled_from(OPERATORS[:1] if isinstance(value, bool) else OPERATORS))
    met = [row for row in rows if row[name] is not None and holds(row[name], value)]
    found = plain_of(
        table.scan(snapshot=snapshot, where=holds(lake.col(name), value)).to_arrow(), scenario
    )
    assert_same_rows(found, plain(met, scenario))


def pool_of(scenario: Scenario, name: str) -> list[Any]:
    if name in scenario.partition_keys:
        return ["2024-01-01", "2024-01-02", "2024-01-03"]
    return POOLS[scenario.columns[name]]


def compacts(table: lake.Table, model: MergeModel) -> bool:
    """True if the rows of all commits can be compared."""
    try:
        model.read()
    except ModelError:
        with pytest.raises(lake.LakeError):
            table.compact(strategy="full", executor="serial")
        return False
    table.compact(strategy="full", executor="serial")
    return True


def plain(rows: list[dict[str, Any]], scenario: Scenario) -> list[dict[str, Any]]:
    return plain_of(pa.Table.from_pylist(rows, scenario.arrow_schema), scenario)


def plain_of(rows: pa.Table, scenario: Scenario) -> list[dict[str, Any]]:
    return loosened(rows_of(rows), scenario)


@contextmanager
def new_catalog() -> Iterator[lake.Catalog]:
    catalog = lake.open_catalog(f"memory://{uuid4()}/")
    catalog.create_database("shop")
    yield catalog
    catalog.drop_table("shop.orders")
