"""Tasks of ``format("lake")`` leave their worker as the other tasks do: cheap for the next one."""

import gc
import importlib
import sys
import zipfile

import pyarrow as pa
import pytest

from spark_jobs.frames.tables import Warehouse
from spark_jobs.source.lake_source import source_in


@pytest.fixture
def opened(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    return source_in(Warehouse(catalog.location), at_once=1)({"path": "shop.orders"})


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """One that Python has looked into, as a worker has into PySpark's own."""
    path = tmp_path / "shipped_for_source.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("shipped_for_source.py", "")
    monkeypatch.syspath_prepend(str(path))
    importlib.import_module("shipped_for_source")
    yield str(path)
    del sys.modules["shipped_for_source"]
    gc.unfreeze()


def read(opened):
    reader = opened.reader(opened.schema())
    return [batch for part in reader.partitions() for batch in reader.read(part)]


def read_stream(opened):
    reader = opened.streamReader(opened.schema())
    parts = reader.partitions(reader.initialOffset(), reader.latestOffset())
    return [batch for part in parts for batch in reader.read(part)]


def write(opened):
    writer = opened.writer(opened.schema(), False)
    return writer.write(iter([pa.record_batch({"id": [2]})])).messages


def write_stream(opened):
    writer = opened.streamWriter(opened.schema(), False)
    return writer.write(iter([pa.record_batch({"id": [2]})])).messages


@pytest.mark.parametrize("act", [read, read_stream, write, write_stream])
def test_no_task_lets_the_next_one_read_archives_again(opened, archive, act):
    assert archive in sys.path_importer_cache

    assert act(opened)

    assert archive not in sys.path_importer_cache
