"""Random tables with primary keys equal a dict model after any writes.

Each example is a separate table: key types, columns, engine, options, and commits of rows with
kinds. A failing one is shrunk and printed as a ``Scenario``, with a blob that replays it.
``EXAMPLES=3000`` sets the number of tables of each engine; ``SEED=7`` picks other tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.paimon.datafile.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from lakeformat.paimon.merge import streams
from lakeformat.paimon.merge.merge_setup import merge_engine, merge_order
from tests.golden.values import assert_same_rows, rows_of
from tests.merge_model import MergeModel, ModelError, Record
from tests.merge_scenarios import ENGINES, KINDS, Change, Scenario, loosened, scenarios
from tests.sampling import count

TABLES = count(8, 80, "EXAMPLES")
"""Tables of each engine that are written and read; each has some ten keys."""
MERGES = 6 * TABLES
"""Merges of each engine without a table around them."""
FORMATS = ("parquet", "avro", "orc")
BUFFERS: dict[str, dict[str, str]] = {
    "in memory": {},
    "spilled": {"write-buffer-size": "1 b"},
    "row by row": {"write-buffer-size": "1 b", "write-buffer-spillable": "false"},
}
"""The buffer of a write: all rows; a batch, with temporary files; one row, which is a flush."""
MODES: dict[str, dict[str, str]] = {
    "fixed": {},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    "dynamic and full": {
        **{"bucket": "-1", "dynamic-bucket.target-row-num": "1"},
        "dynamic-bucket.max-buckets": "2",
    },
}
"""The bucket modes of keys; some have no room for the keys of an example."""
BATCH_ROWS = {"in memory": 100, "spilled": 2, "row by row": 1}


def examples(count: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, suppress_health_check=slow, print_blob=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_holds_what_its_commits_make_of_it(engine: str):
    @examples(TABLES)
    @given(
        scenarios(engine),
        st.sampled_from(FORMATS),
        st.sampled_from(list(BUFFERS)),
        st.sampled_from(list(MODES)),
    )
    def agrees(scenario: Scenario, file_format: str, buffer: str, mode: str) -> None:
        options = {"file.format": file_format, **BUFFERS[buffer], **MODES[mode]}
        check(scenario, buffer, options)

    agrees()


@pytest.mark.parametrize("engine", ENGINES)
def test_sorted_runs_are_merged_alike_however_they_are_cut_into_batches(engine: str):
    @examples(MERGES)
    @given(scenarios(engine, with_partitions=False), st.integers(1, 4))
    def agrees(scenario: Scenario, batch_rows: int) -> None:
        check_runs(scenario, batch_rows)

    agrees()


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_wait_for_a_bucket_become_what_commits_at_once_make(engine: str):
    """All that waits is one flush, in the order it came in; so the model writes it as one."""

    @examples(TABLES // 2)
    @given(scenarios(engine), st.sampled_from(FORMATS), st.integers(1, 3))
    def agrees(scenario: Scenario, file_format: str, count: int) -> None:
        options = {"bucket": "-2", "postpone.default-bucket-num": str(count)}
        check_postponed(scenario, {"file.format": file_format, **options})

    agrees()


def check_postponed(scenario: Scenario, options: dict[str, str]) -> None:
    """Write all commits, give the rows their bucket, and compare with one flush of all rows."""
    model = scenario.model()
    with new_table(scenario, options) as table:
        schema = table.schema.arrow_schema()
        for commit in scenario.commits:
            rows = pa.Table.from_pylist([row for _, row in commit], schema)
            table.write(rows, kinds=[kind for kind, _ in commit])
        assert table.scan().count() == 0
        try:
            model.write([change for commit in scenario.commits for change in commit])
            rows = pa.Table.from_pylist(model.read(), schema)
        except ModelError:
            with pytest.raises(lake.LakeError):
                compacted(table)
            return
        wanted = loosened(rows_of(rows), scenario)
        assert_same_rows(loosened(rows_of(compacted(table)), scenario), wanted)
        assert not table.plan_compaction().units


def compacted(table: lake.Table) -> pa.Table:
    """The rows once all have their bucket."""
    table.compact()
    return table.scan().to_arrow()


def check(scenario: Scenario, buffer: str, options: dict[str, str]) -> None:
    """Write the commits to a table and to the model, and compare after each of them."""
    model = scenario.model()
    with new_table(scenario, options) as table:
        for changes in scenario.commits:
            flushes = [[change] for change in changes] if buffer == "row by row" else [changes]
            write(table, model, flushes, scenario, BATCH_ROWS[buffer])
        compare_reads(table, model, scenario)


def check_runs(scenario: Scenario, batch_rows: int) -> None:
    """Merge the runs of the model as a read or a compaction does, kinds and all."""
    model = scenario.model()
    with new_table(scenario, {}) as table:
        schema = table.schema
    merged = None
    with suppress(ModelError):  # what cannot be flushed is not a run
        for changes in scenario.commits:
            model.write(changes)
    with suppress(ModelError):
        merged = model.merged()
    runs = [
        iter(run_table(list(run.values()), schema.arrow_schema()).to_batches(batch_rows))
        for run in model.runs
    ]
    with patch.multiple(streams, CHUNK_ROWS=batch_rows, FEWEST=batch_rows, MOST=batch_rows):
        parts = streams.merge_runs(runs, merge_order(schema), merge_engine(schema))
        if merged is None:
            with pytest.raises(lake.LakeError):
                list(parts)
            return
        found = [row for part in parts for row in rows_of(part)]
    wanted = rows_of(run_table(merged, schema.arrow_schema()))
    for row in (*found, *wanted):
        del row[SEQUENCE_NUMBER.name]
    assert_same_rows(loosened(found, scenario), loosened(wanted, scenario))


@contextmanager
def new_table(scenario: Scenario, options: dict[str, str]) -> Iterator[lake.Table]:
    catalog = lake.open_catalog(f"memory://{uuid4()}/")
    catalog.create_database("shop")
    yield catalog.create_table(
        "shop.orders",
        scenario.typed_columns,
        primary_key=scenario.primary_key,
        partition_by=scenario.partition_keys,
        options={**scenario.options, **options},
    )
    catalog.drop_table("shop.orders")


def write(
    table: lake.Table,
    model: MergeModel,
    flushes: list[list[Change]],
    scenario: Scenario,
    batch_rows: int,
) -> None:
    """One commit on both sides; where the model refuses, nothing may be published."""
    before = table.latest_snapshot()
    changes = [change for flush in flushes for change in flush]
    rows = pa.Table.from_pylist([row for _, row in changes], table.schema.arrow_schema())
    batches = rows.to_batches(max_chunksize=batch_rows)
    kinds = [kind for kind, _ in changes]
    try:
        log = [change for flush in flushes for change in model.write(flush)]
    except ModelError:
        with pytest.raises(lake.LakeError):
            table.write(batches, kinds=kinds)
        assert table.latest_snapshot() == before
        return
    report = table.write(batches, kinds=kinds)
    delta = [change for flush in range(-len(flushes), 0) for change in model.delta(flush)]
    if not delta:
        assert table.latest_snapshot() == before
        return
    after = 0 if before is None else before.id
    assert report.snapshot_id == after + 1
    assert_changes(table, after, "delta", delta, scenario)
    if "changelog-producer" in scenario.options:
        assert_changes(table, after, "changelog", log, scenario)


def assert_changes(
    table: lake.Table, after: int, mode: str, changes: list[Change], scenario: Scenario
) -> None:
    """The rows of one snapshot, with kinds."""
    found = rows_of(table.changes(after, after + 1, mode).to_arrow())
    wanted = [{"rowkind": kind, **row} for kind, row in changes]
    kind_first = pa.schema([("rowkind", pa.string()), *table.schema.arrow_schema()])
    plain = rows_of(pa.Table.from_pylist(wanted, kind_first))
    assert_same_rows(loosened(found, scenario), loosened(plain, scenario))


def compare_reads(table: lake.Table, model: MergeModel, scenario: Scenario) -> None:
    """A merging read, whole and of some columns, and the count."""
    if model.engine == "first-row":
        assert table.scan().to_arrow().num_rows == 0  # level 0 is not read before a compaction
        return
    try:
        rows = model.read()
    except ModelError:
        with pytest.raises(lake.LakeError):
            table.scan().to_arrow()
        return
    wanted = loosened(rows_of(pa.Table.from_pylist(rows, table.schema.arrow_schema())), scenario)
    assert_same_rows(loosened(rows_of(table.scan().to_arrow()), scenario), wanted)
    assert table.scan().count() == len(wanted)
    some = list(scenario.columns)[-1:0:-2] or list(scenario.columns)
    found = loosened(rows_of(table.scan(some).to_arrow()), scenario)
    assert_same_rows(found, [{name: row[name] for name in some} for row in wanted])


def run_table(records: Sequence[Record], schema: pa.Schema) -> pa.Table:
    """Records of the model as the engines take them."""
    columns = {
        SEQUENCE_NUMBER.name: pa.array([number for number, _, _ in records], pa.int64()),
        VALUE_KIND.name: pa.array([KINDS.index(kind) for _, kind, _ in records], pa.int8()),
    }
    rows = pa.Table.from_pylist([row for _, _, row in records], schema)
    return pa.table({**columns, **dict(zip(rows.column_names, rows.columns, strict=True))})
