"""Opening a table loads few modules, and a small append makes few calls."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import lakeformat as lake
from tests.unit.test_lazy_names import loaded_after

PACKAGE = f"{Path(lake.__file__).parent}/"
COLUMNS = [("id", "BIGINT"), ("note", "STRING")]


def calls_of(work: Callable[[], object]) -> Counter[str]:
    """The number of calls of functions in each module of the library."""
    calls: Counter[str] = Counter()

    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[frame.f_code.co_filename.removeprefix(PACKAGE)] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def table_in(directory: Path, *partition_by: str) -> lake.Table:
    catalog = lake.open_catalog(str(directory))
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", COLUMNS, partition_by=partition_by)


def modules_after(code: str) -> set[str]:
    return {name for name in loaded_after(code) if name.startswith("lakeformat.")}


def test_an_append_of_three_rows_passes_few_modules_in_few_calls(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "lakeformat")  # another test may have turned on INFO
    table = table_in(tmp_path)
    rows = pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]})
    for _ in range(2):
        table.write(rows)
    calls = calls_of(lambda: table.write(rows))
    assert len(calls) <= 70, sorted(calls)
    assert calls.total() <= 1_500, calls.most_common(10)


def test_an_append_of_three_rows_to_an_iceberg_table_passes_as_few_modules(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "lakeformat")
    catalog = lake.open_catalog(str(tmp_path), format="iceberg")
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", COLUMNS)
    rows = pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]})
    for _ in range(2):
        table.write(rows)
    calls = calls_of(lambda: table.write(rows))
    assert len(calls) <= 70, sorted(calls)
    assert calls.total() <= 1_900, calls.most_common(10)


def test_opening_a_table_loads_neither_its_writers_nor_its_readers(tmp_path):
    table_in(tmp_path)
    opened = f"import lakeformat; lakeformat.open_catalog({str(tmp_path)!r}).table('shop.orders')"
    loaded = loaded_after(opened)
    assert not loaded & {"fastavro", "pandas", "pyarrow.compute", "pyarrow.parquet"}
    packages = ("commit", "write", "read", "merge", "compact")
    unwanted = tuple(f"lakeformat.paimon.{name}." for name in packages)
    assert not {name for name in loaded if name.startswith(unwanted)}
    assert len(modules_after(opened)) <= 125


def test_the_class_of_tables_is_imported_with_few_modules():
    assert len(modules_after("import lakeformat.paimon.table")) <= 95


def test_checks_and_expiry_of_a_table_load_neither_pandas_nor_a_query_engine(tmp_path):
    """Such a task would otherwise run twice as long as an empty one."""
    table = table_in(tmp_path, "note")
    for number in range(3):
        table.write(pa.table({"id": [number], "note": ["x"]}))
    opened = (
        f"import lakeformat; t = lakeformat.open_catalog({str(tmp_path)!r}).table('shop.orders')"
    )
    loaded = loaded_after(f"{opened}; t.health(); t.expire_snapshots(retain_max=1, retain_min=1)")

    assert len(table.snapshots()) == 1
    assert not loaded & {"pandas", "pyarrow.acero", "pyarrow.dataset", "pyarrow.orc"}
    packages = ("compact.plan", "orphans.", "read.where", "write.table_writer")
    unwanted = tuple(f"lakeformat.paimon.{name}" for name in packages)
    assert not {name for name in loaded if name.startswith(unwanted)}
