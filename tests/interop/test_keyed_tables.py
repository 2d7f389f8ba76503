"""Random tables with primary keys: pypaimon reads our tables, and this library reads its tables.

Both must find the rows of the dict model. Left out is what pypaimon has not: deletes in
engines other than deduplicate and the options about them, sequence groups, compaction and with it
``first-row``. It does not count the deletes it writes, and then every reader brings deleted rows
back; so it writes inserts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from tests import sampling
from tests.aggregate_model import ModelError
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer
from tests.merge_scenarios import Scenario, loosened, scenarios

EXAMPLES = settings(
    max_examples=sampling.count(8, whole=25, name="EXAMPLES"),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
ADD_ONLY = ("partial-update", "aggregation")
NUMBERS = count()


def known_to_pypaimon(engine: str) -> st.SearchStrategy[Scenario]:
    return scenarios(engine).map(without_what_pypaimon_refuses).filter(is_known)


def is_known(scenario: Scenario) -> bool:
    """Its aggregation fails over any map, finds zeros of two signs equal, and calls a function even
    for a row alone, which shows where that makes a set or drops a blank text."""
    options, columns = scenario.options, scenario.columns
    if options["merge-engine"] != "aggregation":
        return True
    has_maps = any(kind.startswith("MAP") for kind in columns.values())
    makes_sets = any(key.endswith((".distinct", ".nested-key")) for key in options)
    finds_extremes = any(
        columns[key.split(".")[1]] in ("FLOAT", "DOUBLE")
        for key, value in options.items()
        if value in ("max", "min")
    )
    joins_texts = "listagg" in options.values()
    return not (has_maps or makes_sets or finds_extremes or joins_texts)


def fits_its_types(scenario: Scenario) -> bool:
    """Return False if a sum or a product leaves its type, which this library refuses."""
    model = scenario.model()
    try:
        for changes in scenario.commits:
            model.write(changes)
        model.read()
    except ModelError:
        return False
    return True


def without_what_pypaimon_refuses(scenario: Scenario) -> Scenario:
    engine = scenario.options["merge-engine"]
    refused = ["ignore-retract", "remove-record", "sequence-group"]
    if engine in ADD_ONLY:
        refused.append("ignore-delete")
    if engine == "partial-update":
        refused.append("fields.")
    options = {
        key: value
        for key, value in scenario.options.items()
        if not any(word in key for word in refused)
    }
    known = replace(scenario, options=options)
    return inserts_only(known) if engine in ADD_ONLY else known


def inserts_only(scenario: Scenario) -> Scenario:
    commits = [[("+I", row) for _, row in changes] for changes in scenario.commits]
    return replace(scenario, commits=commits)


@pytest.mark.parametrize("engine", ["deduplicate", *ADD_ONLY])
def test_pypaimon_reads_the_rows_of_any_table_we_wrote(
    engine: str, catalog: lake.Catalog, peer: Peer
):
    @EXAMPLES
    @given(known_to_pypaimon(engine).filter(fits_its_types))
    def agrees(scenario: Scenario) -> None:
        name = f"shop.ours{next(NUMBERS)}"
        table = scenario.create(catalog, name)
        model = scenario.model()
        for changes in scenario.commits:
            model.write(changes)
            rows = pa.Table.from_pylist([row for _, row in changes], table.schema.arrow_schema())
            table.write(rows, kinds=[kind for kind, _ in changes])
        assert_both_read(table, peer, name, scenario, model.read())

    agrees()


@pytest.mark.parametrize("engine", ["deduplicate", *ADD_ONLY])
def test_we_read_the_rows_of_any_table_pypaimon_wrote(
    engine: str, catalog: lake.Catalog, peer: Peer
):
    @EXAMPLES
    @given(known_to_pypaimon(engine).map(inserts_only).filter(fits_its_types))
    def agrees(scenario: Scenario) -> None:
        name = f"shop.theirs{next(NUMBERS)}"
        schema = scenario.arrow_schema
        peer.create_table(
            name,
            schema,
            scenario.options,
            primary_key=scenario.primary_key,
            partition_by=scenario.partition_keys,
        )
        model = scenario.model()
        for changes in scenario.commits:
            model.write(changes)
            peer.write(name, pa.Table.from_pylist([row for _, row in changes], schema))
        assert_both_read(catalog.table(name), peer, name, scenario, model.read())

    agrees()


def assert_both_read(
    table: lake.Table, peer: Peer, name: str, scenario: Scenario, rows: list[dict[str, object]]
) -> None:
    wanted = loosened(rows_of(pa.Table.from_pylist(rows, scenario.arrow_schema)), scenario)
    assert_same_rows(loosened(rows_of(table.scan().to_arrow()), scenario), wanted)
    assert_same_rows(loosened(rows_of(peer.read(name)), scenario), wanted)
