"""Manifests in ORC and Parquet, as other engines write them with 'manifest.format'."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import lakeformat as lake

FORMATS = ["orc", "parquet"]
COLUMNS = [("id", "BIGINT NOT NULL"), ("day", "INT NOT NULL"), ("note", "STRING")]


def new_table(tmp_path: Path, **options: str) -> lake.Table:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders",
        COLUMNS,
        primary_key=["id", "day"],
        partition_by=["day"],
        options=options,  # dynamic buckets have hash files, and so an index manifest
    )


def rows(start: int, stop: int) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table(
        {
            "id": ids,
            "day": pa.array([n % 12 for n in ids], pa.int32()),
            "note": [str(start)] * len(ids),
        }
    )


def codec_in(path: Path) -> str:
    if path.read_bytes().startswith(b"ORC"):
        return str(orc.ORCFile(path).compression)
    return str(pq.read_metadata(path).row_group(0).column(0).compression)


def metadata_files(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.rglob("*manifest*") if path.is_file()]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("manifest_format", FORMATS)
def test_all_metadata_of_a_table_is_of_its_format_and_everything_works(tmp_path, manifest_format):
    table = new_table(tmp_path, **{"manifest.format": manifest_format})
    table.write(rows(0, 24))
    table.compact()
    table.write(rows(12, 36))
    table.compact()
    magic = {"orc": b"ORC", "parquet": b"PAR1"}[manifest_format]
    files = metadata_files(tmp_path)
    assert {path.name.rpartition("-")[0].partition("-")[0] for path in files} == {
        "index",
        "manifest",
    }
    assert all(path.read_bytes().startswith(magic) for path in files)
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert found == rows(0, 12).to_pylist() + rows(12, 36).to_pylist()
    table.expire_snapshots(retain_max=1, retain_min=1, older_than="0 ms")
    assert table.scan(where="day = 7").count() == 3
    assert table.health().verdict == "healthy"


@pytest.mark.parametrize("manifest_format", FORMATS)
def test_manifests_say_the_same_in_every_format(tmp_path, manifest_format):
    entries = []
    for name in ("avro", manifest_format):
        table = new_table(tmp_path / name, **{"manifest.format": name})
        table.write(rows(0, 24))
        files = table.system_table("files").scan().to_arrow()
        entries.append(files.drop_columns(["file_path", "creation_time"]).sort_by("partition"))
    assert entries[0] == entries[1]


@pytest.mark.parametrize(
    ("manifest_format", "compression", "codec"),
    [
        ("parquet", "none", "UNCOMPRESSED"),
        ("parquet", "lz4", "LZ4"),
        ("parquet", "deflate", "GZIP"),
        ("orc", "none", "UNCOMPRESSED"),
        ("orc", "lz4", "LZ4"),
        ("orc", "null", "UNCOMPRESSED"),
    ],
)
def test_compressions_are_those_of_the_format_or_most_like_it(
    tmp_path, manifest_format, compression, codec
):
    options = {"manifest.format": manifest_format, "manifest.compression": compression}
    new_table(tmp_path, **options).write(rows(0, 5))
    assert {codec_in(path) for path in metadata_files(tmp_path)} == {codec}


@pytest.mark.parametrize(("compression", "codec"), [("none", b"null"), ("lz4", b"snappy")])
def test_avro_has_no_lz4_and_gets_what_every_reader_knows(tmp_path, compression, codec):
    table = new_table(tmp_path, **{"manifest.compression": compression})
    table.write(rows(0, 24))
    said = b"avro.codec" + bytes([2 * len(codec)]) + codec
    assert all(said in path.read_bytes() for path in metadata_files(tmp_path))
    assert table.scan().count() == 24


@pytest.mark.parametrize("manifest_format", FORMATS)
def test_a_damaged_manifest_is_named(tmp_path, manifest_format):
    table = new_table(tmp_path, **{"manifest.format": manifest_format})
    table.write(rows(0, 5))
    for path in metadata_files(tmp_path):
        content = path.read_bytes()
        path.write_bytes(content[:20] + bytes(len(content) - 40) + content[-20:])
    with pytest.raises(lake.CorruptTableError, match=r"manifest-list-.* is not a readable"):
        table.scan().to_arrow()


def test_a_file_that_claims_more_rows_than_it_can_hold_is_not_unpacked(tmp_path):
    table = new_table(tmp_path, **{"manifest.format": "parquet"})
    table.write(rows(0, 5))
    [delta] = [path for path in metadata_files(tmp_path) if path.name.endswith("-1")]
    bomb = pa.table({"_VERSION": pa.repeat(pa.scalar(2, pa.int32()), 30_000_000)})
    pq.write_table(bomb, delta, compression="zstd")
    snapshot = next(tmp_path.rglob("snapshot-1"))
    snapshot.write_text(
        "\n".join(line for line in snapshot.read_text().splitlines() if "ListSize" not in line)
    )
    with pytest.raises(lake.CorruptTableError, match="far more bytes or records than a file"):
        table.scan().to_arrow()


def test_the_format_is_not_changed_once_there_are_manifests(tmp_path):
    new_table(tmp_path).write(rows(0, 5))
    with pytest.raises(lake.LakeError, match=r"manifest\.format"):
        lake.open_catalog(str(tmp_path)).alter_table(
            "shop.orders", lake.set_option("manifest.format", "orc")
        )
