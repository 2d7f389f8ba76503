"""Runs in pypaimon's own environment: times writes to new tables and prints them as JSON.

Only the standard library, pypaimon and the pyarrow it pins are installed. Arguments: warehouse, the
prefix of the table names (each round writes to its own table: PREFIX0, PREFIX1 and so on), the
Arrow file of the rows, the number of rounds, and the engine: "python", or "native" for Rust.
"""

import json
import sys
import time
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory

NATIVE = {"write.native.enabled": "true", "commit.native.enabled": "true"}


def main(warehouse: str, table_name: str, rows_file: str, rounds: int, engine: str) -> None:
    """Write the rows to the tables ``<table_name>0`` and so on, which exist and are empty."""
    with pa.OSFile(rows_file, "rb") as source:
        rows = pa.ipc.open_file(source).read_all()
    catalog = CatalogFactory.create({"warehouse": warehouse})
    options = NATIVE if engine == "native" else {}
    if options:
        import pypaimon_rust.datafusion  # noqa: F401 - without it pypaimon would use Python
    tables = [catalog.get_table(f"{table_name}{number}").copy(options) for number in range(rounds)]
    timings = [write(table, rows) for table in tables]
    print(json.dumps(timings))


def write(table: Any, rows: pa.Table) -> tuple[float, float]:
    """Return the wall seconds and CPU seconds of one write with its commit."""
    wall, cpu = time.perf_counter(), time.process_time()
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
