"""Tables with external files, with formats by level and with keys: pypaimon reads the same rows."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.datafile.file_description import FileOrigin
from lakeformat.paimon.datafile.key_value_files import KeyValueFiles
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.partition import partition_path
from tests.conformance.format_checklist.keyed_table import DELETE, KeyedTable
from tests.golden.values import assert_same_rows, rows_of
from tests.interop.peer import Peer

COLUMNS = [("id", "BIGINT"), ("note", "STRING")]
STRATEGY = "data-file.external-paths.strategy"


def rows_from(start: int) -> pa.Table:
    numbers = list(range(start, start + 3))
    return pa.table({"id": numbers, "note": [f"note {number}" for number in numbers]})


@pytest.mark.parametrize("below", ["", "data/v1"], ids=["plain", "data directory"])
def test_each_reads_what_the_other_has_put_outside_the_table(
    catalog: lake.Catalog, peer: Peer, tmp_path: Path, below: str
):
    paths = [(tmp_path / name).as_uri() for name in ("a", "b")]
    options = {"data-file.external-paths": ",".join(paths), STRATEGY: "round-robin"}
    if below:
        options["data-file.path-directory"] = below
    table = catalog.create_table("shop.outside", COLUMNS, options=options)
    table.write(rows_from(0))
    peer.write("shop.outside", rows_from(3))
    table.write(rows_from(6))
    assert list((tmp_path / "warehouse").rglob("*.parquet")) == []
    files = [path for name in ("a", "b") for path in (tmp_path / name).rglob("*.parquet")]
    assert {path.parent.relative_to(tmp_path).parts[1:] for path in files} == {
        (*filter(None, below.split("/")), "bucket-0")
    }
    assert len(files) == 3
    expected = rows_of(rows_from(0)) + rows_of(rows_from(3)) + rows_of(rows_from(6))
    assert_same_rows(rows_of(peer.read("shop.outside")), expected)
    assert_same_rows(rows_of(table.scan().to_arrow()), expected)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("keyed", {"primary_key": ["id"], "options": {"bucket": "2"}}),
        ("parts", {"partition_by": ["note"]}),
        (
            "both",
            {
                "primary_key": ["note", "id"],
                "partition_by": ["note"],
                "options": {"bucket": "2", "bucket-key": "id"},
            },
        ),
        ("buckets", {"options": {"bucket": "2", "bucket-key": "id"}}),
    ],
)
def test_pypaimon_writes_to_the_tables_with_keys_we_make(
    catalog: lake.Catalog, peer: Peer, name: str, keys: dict
):
    table = catalog.create_table(f"shop.{name}", COLUMNS, **keys)
    arriving = rows_from(0).cast(table.schema.arrow_schema())
    peer.write(f"shop.{name}", arriving)
    assert_same_rows(rows_of(table.scan().to_arrow()), rows_of(arriving))


class LevelledTable(KeyedTable):
    """Assert that data files have the format of their level."""

    def _write_files(
        self, rows: pa.Table, bucket: int, level: int, partition: bytes
    ) -> list[DataFileMeta]:
        directory = self.layout.bucket_directory(bucket, partition_path(self.schema, partition))
        options = self.schema.table_options
        files = KeyValueFiles(
            self.storage, directory, self.schema.fields, self.keys, options, str(uuid4())
        )
        writer = files.new_run(level)
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.finish(FileOrigin(0, datetime(2024, 1, 1), level=level))


def test_pypaimon_reads_a_table_with_another_format_on_each_level(
    catalog: lake.Catalog, peer: Peer
):
    table = LevelledTable(
        f"{catalog.location.removeprefix('file://')}/shop.db/levels",
        [("id", "BIGINT NOT NULL"), ("note", "STRING")],
        ["id"],
        {
            "bucket": "1",
            "file.format.per.level": "0:avro,5:orc",
            "file.compression.per.level": "0:snappy,3:lz4,5:lz4",
            "metadata.stats-mode.per.level": "0:none",
            "file.suffix.include.compression": "true",
        },
    )
    entries = [
        *table.write([{"id": n, "note": "old"} for n in range(9)], level=5),
        *table.write([{"id": n, "note": "newer"} for n in range(2, 6)], level=3),
        *table.write([{"id": 3, "note": "newest"}, {"id": 4, "note": None, "kind": DELETE}]),
    ]
    table.commit(entries)
    endings = [entry.file.file_name.partition(".")[2] for entry in entries]
    assert endings == ["lz4.orc", "lz4.parquet", "snappy.avro"]
    texts = {**dict.fromkeys(range(9), "old"), **dict.fromkeys((2, 5), "newer"), 3: "newest"}
    expected = [{"id": n, "note": text} for n, text in texts.items() if n != 4]
    assert_same_rows(rows_of(catalog.table("shop.levels").scan().to_arrow()), expected)
    assert_same_rows(rows_of(peer.read("shop.levels")), expected)
