"""Runs in an environment of its own: DuckDB, Iceberg-Rust and ClickHouse read Iceberg tables.

It answers one JSON request per line until its input ends. A request names the reader, the newest
metadata file of a table and an Arrow IPC file for the rows. Only the standard library, the readers
and pyarrow are there.
"""

import json
import os
import sys
import traceback
from functools import cache
from importlib import resources
from pathlib import Path

import chdb
import duckdb
import pyarrow as pa
from datafusion import SessionContext
from pyiceberg_core.datafusion import IcebergDataFusionTable


def main():
    """Keep standard output for answers; redirect the readers' output to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)


def answer(verb, metadata, into, snapshot):
    """Let a reader write all rows into an Arrow IPC file; return their number, or its error."""
    try:
        rows = READERS[verb](metadata, snapshot)
        with pa.OSFile(into, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
        return {"result": rows.num_rows}
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        return {"error": repr(error), "trace": traceback.format_exc()}


def read_with_duckdb(metadata, snapshot):
    at = "" if snapshot is None else f", snapshot_from_id = {snapshot}"
    query = f"FROM iceberg_scan(?{at})"
    return duckdb_connection().execute(query, [metadata]).to_arrow_table()


@cache
def duckdb_connection():
    """A connection with the extensions of the installed packages; nothing is downloaded."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    for name in ("avro", "iceberg"):
        package = resources.files(f"duckdb_extension_{name}")
        file = package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        connection.execute(f"LOAD '{file}'")
    return connection


def read_with_iceberg_rust(metadata, snapshot):
    """Iceberg-Rust in DataFusion reads the newest snapshot only."""
    assert snapshot is None
    context = SessionContext()
    table = IcebergDataFusionTable(["d", "t"], f"file://{metadata}", {})
    context.register_table("t", table)
    return context.table("t").to_arrow_table()


def read_with_clickhouse(metadata, snapshot):
    """ClickHouse reads files below the working directory only."""
    settings = f"SETTINGS iceberg_metadata_file_path = 'metadata/{Path(metadata).name}'"
    query = f"SELECT * FROM icebergLocal('{Path(metadata).parent.parent}', 'Parquet', {settings})"
    if snapshot is not None:
        query += f" SETTINGS iceberg_snapshot_id = {snapshot}"
    with pa.ipc.open_stream(chdb.query(query, "ArrowStream").bytes()) as stream:
        return stream.read_all()


READERS = {
    "ClickHouse": read_with_clickhouse,
    "DuckDB": read_with_duckdb,
    "Iceberg-Rust": read_with_iceberg_rust,
}

if __name__ == "__main__":
    main()
