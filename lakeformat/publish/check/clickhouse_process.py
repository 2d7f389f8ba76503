# SPDX-License-Identifier: Apache-2.0
"""Lets ClickHouse (``chdb``) read a table in a separate process.

ClickHouse reads only files below the working directory of its process, so the process works in the
root directory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa

from lakeformat.errors import UnavailableError

__all__ = ["clickhouse_rows"]

_RUN = """
import sys, chdb
with open(sys.argv[2], "wb") as rows:
    rows.write(chdb.query(sys.argv[1], "ArrowStream").bytes())
"""
_LONGEST_SECONDS = 3600


def clickhouse_rows(metadata_file: str) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a table on a local disk, from the URI of its metadata file.

    Raise ``UnavailableError`` if ClickHouse cannot read the table.
    """
    with tempfile.NamedTemporaryFile(suffix=".arrow") as rows:
        command = [sys.executable, "-P", "-c", _RUN, _query(metadata_file), rows.name]
        done = subprocess.run(
            command, cwd="/", capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS
        )
        if done.returncode:
            raise UnavailableError(
                f"ClickHouse cannot read {metadata_file}: {_last_line(done.stderr)}"
            )
        if rows.seek(0, 2):
            with pa.OSFile(rows.name, "rb") as source, pa.ipc.open_stream(source) as stream:
                yield from stream


def _query(metadata_file: str) -> str:
    directory, _, name = url2pathname(urlsplit(metadata_file).path).rpartition("/")
    table, _, metadata = directory.rpartition("/")
    settings = f"SETTINGS iceberg_metadata_file_path = {_quoted(f'{metadata}/{name}')}"
    return f"SELECT * FROM icebergLocal({_quoted(table)}, 'Parquet', {settings})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _last_line(text: str) -> str:
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    named = [each for each in lines if "Exception" in each or "Error" in each]
    return (named or lines or ["its process ended without a message"])[-1]
