"""Random tables with primary keys: Java reads our tables, and this library reads Java's.

Both must find the rows of the dictionary model. Left out is where this release of Java knows less
than the one the specification was taken from, and where it breaks its own rule.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from tests.java.peer_process import JavaPeer
from tests.java.wire import json_rows
from tests.json_process import PeerError
from tests.merge_model import MergeModel, ModelError
from tests.merge_scenarios import Change, Scenario, scenarios

EXAMPLES = settings(
    max_examples=int(os.environ.get("EXAMPLES", "40")),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
MERGING = ("deduplicate", "partial-update", "aggregation")
"""Engines whose rows are read before a compaction."""
NUMBERS = count()
REFUSED, NAN = "refused", "NaN"
EXPONENTS = {"FLOAT": 0x7F80_0000, "DOUBLE": 0x7FF0_0000_0000_0000}
"""The bits that are all set in what is infinite or no number."""


def known_to_java(engine: str) -> st.SearchStrategy[Scenario]:
    return scenarios(engine).filter(is_known).map(with_late_rows_apart)


def is_known(scenario: Scenario) -> bool:
    """Return True if this release merges the columns as the newer one of the specification does."""
    newer = ("count-limit", "nested-sequence-field")
    functions = {
        (value, scenario.columns[key.split(".")[1]])
        for key, value in scenario.options.items()
        if key.endswith(".aggregate-function")
    }
    refused = {("max", "BOOLEAN"), ("min", "BOOLEAN"), ("listagg", "STRING")}
    return not functions & refused and not any(key.endswith(newer) for key in scenario.options)


def with_late_rows_apart(scenario: Scenario) -> Scenario:
    """One row a commit where sequences descend: Java's write buffer looks at them ascending."""
    if "sequence.field.sort-order" in scenario.options:
        scenario.commits = [[change] for changes in scenario.commits for change in changes]
    return scenario


@pytest.mark.parametrize("engine", MERGING)
def test_java_reads_the_rows_of_any_table_we_wrote(
    engine: str, catalog: lake.Catalog, peer: JavaPeer
):
    @EXAMPLES
    @given(known_to_java(engine))
    def agrees(scenario: Scenario) -> None:
        name = f"shop.ours{next(NUMBERS)}"
        table = scenario.create(catalog, name)
        model = scenario.model()
        for changes in scenario.commits:
            if try_on(model, changes):
                table.write(arrow(scenario, changes), kinds=[kind for kind, _ in changes])
        wanted = wanted_rows(model, scenario)
        assert rows_or_refusal(lambda: our_rows(table), scenario) == wanted
        assert rows_or_refusal(lambda: peer.read(name).rows, scenario) == wanted

    agrees()


@pytest.mark.parametrize("engine", MERGING)
def test_we_read_the_rows_of_any_table_java_wrote(
    engine: str, catalog: lake.Catalog, peer: JavaPeer
):
    @EXAMPLES
    @given(known_to_java(engine))
    def agrees(scenario: Scenario) -> None:
        name = f"shop.theirs{next(NUMBERS)}"
        create(peer, name, scenario, {"write-only": "true"})
        model = scenario.model()
        for changes in scenario.commits:
            if try_on(model, changes):
                java_writes(peer, name, scenario, changes)
        wanted = wanted_rows(model, scenario)
        assert rows_or_refusal(lambda: our_rows(catalog.table(name)), scenario) == wanted
        assert rows_or_refusal(lambda: peer.read(name).rows, scenario) == wanted

    agrees()


@pytest.mark.parametrize("engine", [*MERGING, "first-row"])
def test_we_read_what_java_s_compactions_left(engine: str, catalog: lake.Catalog, peer: JavaPeer):
    @EXAMPLES
    @given(known_to_java(engine))
    def agrees(scenario: Scenario) -> None:
        name = f"shop.compacted{next(NUMBERS)}"
        # A compaction at the second sorted run: what follows meets rows of higher levels.
        create(peer, name, scenario, {"num-sorted-run.compaction-trigger": "2"})
        for changes in scenario.commits:
            try:
                java_writes(peer, name, scenario, changes)
            except PeerError:
                assume(False)
        # One that is not done when a commit is made is given up: then its rows meet in each reader.
        ours = rows_or_refusal(lambda: our_rows(catalog.table(name)), scenario)
        assume(ours != [REFUSED] or "product" not in scenario.options.values())
        assert ours == rows_or_refusal(lambda: peer.read(name).rows, scenario)

    agrees()


def try_on(model: MergeModel, changes: Sequence[Change]) -> bool:
    """Give the model one commit, if it takes it."""
    try:
        model.write(changes)
    except ModelError:
        return False
    return True


def rows_or_refusal(read: Callable[[], Sequence[Sequence[Any]]], scenario: Scenario) -> list[str]:
    """Return the rows, or a mark for a refusal, which each side reports with its own error."""
    try:
        rows = read()
    except (ModelError, PeerError, lake.LakeError):
        return [REFUSED]
    return comparable(rows, scenario)


def wanted_rows(model: MergeModel, scenario: Scenario) -> list[str]:
    """Return the expected rows of both sides; in this release an integer product wraps around."""
    wanted = rows_or_refusal(lambda: model_rows(model, scenario), scenario)
    assume(wanted != [REFUSED] or "product" not in scenario.options.values())
    return wanted


def model_rows(model: MergeModel, scenario: Scenario) -> list[list[Any]]:
    return json_rows(pa.Table.from_pylist(model.read(), scenario.arrow_schema))


def our_rows(table: lake.Table) -> list[list[Any]]:
    return json_rows(table.scan().to_arrow())


def create(peer: JavaPeer, name: str, scenario: Scenario, options: dict[str, str]) -> None:
    peer.create_table(
        name,
        scenario.typed_columns,
        {**scenario.options, **options},
        primary_keys=scenario.primary_key,
        partition_keys=scenario.partition_keys,
    )


def java_writes(peer: JavaPeer, name: str, scenario: Scenario, changes: Sequence[Change]) -> None:
    peer.write(name, arrow(scenario, changes), kinds=[kind for kind, _ in changes])


def arrow(scenario: Scenario, changes: Sequence[Change]) -> pa.Table:
    return pa.Table.from_pylist([row for _, row in changes], scenario.arrow_schema)


def comparable(rows: Sequence[Sequence[Any]], scenario: Scenario) -> list[str]:
    """Return rows in any order, with arrays and maps whose order has no meaning normalised."""
    columns = scenario.columns.items()
    loose = [name in scenario.unordered or "MAP" in kind for name, kind in columns]
    kinds = list(scenario.columns.values())

    def plain(value: Any, is_loose: bool, kind: str) -> Any:
        if value is not None and is_loose:
            return sorted(value, key=repr)
        return NAN if is_nan(value, kind) else value

    return sorted(
        repr([plain(*each) for each in zip(row, loose, kinds, strict=True)]) for row in rows
    )


def is_nan(bits: Any, kind: str) -> bool:
    """Return True for the bits of a NaN: the machine chooses which NaN an operation gives."""
    if bits is None or kind not in EXPONENTS:
        return False
    exponent = EXPONENTS[kind]
    return bits & exponent == exponent and bits & (exponent & -exponent) - 1 != 0
