"""The memory of a merge does not grow with the rows of a table."""

from __future__ import annotations

from threading import Lock

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.merge.streams import FEWEST
from lakeformat.paimon.read.data_files import DataFiles

RUNS = 3


class Held:
    """Rows that were read and have not come out of the merge yet, at most."""

    def __init__(self, monkeypatch) -> None:
        self.now = self.most = self.read = 0
        self.lock = Lock()  # batches are read in another thread than they come out in
        key_values = DataFiles.key_values

        def counted(*arguments, **options):
            for batch in key_values(*arguments, **options):
                with self.lock:
                    self.read += batch.num_rows
                    self.now += batch.num_rows
                    self.most = max(self.most, self.now)
                yield batch

        monkeypatch.setattr(DataFiles, "key_values", counted)
        # As few rows at once as ever, so that a small table is many times as many.
        monkeypatch.setattr("lakeformat.paimon.merge.streams.CHUNK_ROWS", RUNS * FEWEST)

    def drain(self, table: lake.Table) -> int:
        rows = 0
        for batch in table.scan().to_batches():
            rows += batch.num_rows
            with self.lock:
                self.now -= RUNS * batch.num_rows
        return rows


def table_of(keys: int) -> lake.Table:
    """Every key in every one of some runs."""
    catalog = lake.open_catalog(f"memory://read-memory-{keys}/wh")
    catalog.create_database("shop", exist_ok=True)
    columns = [("k", "INT"), ("v", "INT")]
    table = catalog.create_table("shop.t", columns, primary_key=["k"], options={"bucket": "1"})
    for run in range(RUNS):
        numbers = pa.array(range(keys), pa.int32())
        table.write(pa.table({"k": numbers, "v": pa.array([run] * keys, pa.int32())}))
    return table


@pytest.mark.parametrize("keys", [5 * FEWEST, 30 * FEWEST])
def test_a_merge_holds_a_batch_or_two_of_each_run_however_many_rows_there_are(monkeypatch, keys):
    table, held = table_of(keys), Held(monkeypatch)
    assert held.drain(table) == keys
    assert (held.read, held.now) == (RUNS * keys, 0)
    assert held.most <= 2 * RUNS * FEWEST
