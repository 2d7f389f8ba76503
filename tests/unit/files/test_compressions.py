"""Every compression that Java takes for a format is taken here, and read back."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import lakeformat as lake
from lakeformat.files.codecs import CODECS

ROWS = pa.table({"id": list(range(1_000)), "note": ["a", "b", None, "d"] * 250})
ALL = [(file_format, name) for file_format in CODECS for name in CODECS[file_format]]
IN_FILES = {
    ("parquet", "uncompressed"): "UNCOMPRESSED",
    ("parquet", "none"): "UNCOMPRESSED",
    ("parquet", "lz4_raw"): "LZ4",
    ("orc", "none"): "UNCOMPRESSED",
    ("avro", "zstd"): "ZSTANDARD",
}
"""Names in files that are not those of the option."""


def codec_in(path: Path) -> str:
    """The declared codec of a file, in capitals."""
    if path.suffix == ".parquet":
        return str(pq.read_metadata(path).row_group(0).column(0).compression)
    if path.suffix == ".orc":
        return str(orc.ORCFile(path).compression)
    with path.open("rb") as stream:
        return str(fastavro.reader(stream).codec).upper()


def new_table(tmp_path: Path, **options: str) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL"), ("note", "STRING")],
        primary_key=["id"],
        options={"bucket": "1", **options},
    )


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("file_format", "compression"), ALL)
def test_a_table_is_written_and_compacted_in_each_compression(tmp_path, file_format, compression):
    table = new_table(tmp_path, **{"file.format": file_format, "file.compression": compression})
    table.write(ROWS.slice(0, 600))
    table.write(ROWS.slice(400))
    table.compact()
    codecs = {codec_in(path) for path in tmp_path.rglob(f"data-*.{file_format}")}
    assert codecs == {IN_FILES.get((file_format, compression), compression.upper())}
    assert table.scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()


def test_disjoint_files_are_joined_whether_compression_is_called_none_or_uncompressed(tmp_path):
    table = new_table(tmp_path, **{"file.compression": "none"})
    table.write(ROWS)
    lake.open_catalog(str(tmp_path)).alter_table(
        "shop.orders", lake.set_option("file.compression", "uncompressed")
    )
    table = lake.open_table(table.location)
    table.write(pa.table({"id": [5_000], "note": ["last"]}))
    table.compact()
    assert table.scan().count() == 1_001


def test_a_compression_no_codec_is_there_for_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(lake.InvalidRequestError, match=r"'file.compression' is 'lzo'.*brotli"):
        new_table(tmp_path, **{"file.compression": "lzo"})
