"""A writer holds no more rows than its buffer: the rest waits on the local disk, or is written."""

from __future__ import annotations

import tempfile

import numpy
import pyarrow as pa
import pytest

import lakeformat as lake

SMALL = {"write-buffer-size": "64 kb"}
BATCH_ROWS = 1_000


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """The folder of temporary files."""
    place = tmp_path / "disk"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


def keyed(catalog, **options) -> lake.Table:
    return catalog.create_table(
        "shop.orders",
        [("id", "BIGINT"), ("n", "BIGINT"), ("note", "STRING")],
        primary_key=["id"],
        options={"bucket": "3", **options},
    )


def batches(count: int, keys: int = 5_000, seed: int = 5):
    """Rows whose keys come again and again, each time with a higher ``n``."""
    random = numpy.random.default_rng(seed)
    for number in range(count):
        ids = random.integers(0, keys, BATCH_ROWS)
        numbers = numpy.arange(number * BATCH_ROWS, (number + 1) * BATCH_ROWS)
        notes = pa.array([f"note {n}" for n in numbers])
        yield pa.table({"id": ids, "n": numbers, "note": notes})


def newest(tables) -> dict[int, int]:
    """The rows merged in a dict."""
    found: dict[int, int] = {}
    for table in tables:
        found.update(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
    return found


def content(table: lake.Table) -> dict[int, int]:
    found = table.scan(["id", "n"]).to_arrow()
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_what_was_spilled_is_merged_into_one_run_per_bucket(catalog, disk, compression):
    table = keyed(catalog, **SMALL, **{"spill-compression": compression})
    report = table.write(batches(20))
    assert report.files == 3
    assert content(table) == newest(batches(20))
    assert list(disk.iterdir()) == []


def test_rows_are_spilled_while_they_come_and_nothing_of_the_table_is_written(
    catalog, disk, tmp_path
):
    writer = keyed(catalog, **SMALL).new_writer()
    writer.write(batches(20))
    assert len(list(disk.rglob("*.arrow"))) > 3
    assert list(tmp_path.rglob("*.parquet")) == []
    writer.abort()
    assert list(disk.iterdir()) == []


def test_a_source_that_breaks_leaves_no_temporary_file(catalog, disk, tmp_path):
    def breaking():
        yield from batches(20)
        assert list(disk.rglob("*.arrow"))
        raise KeyError("source broke")

    with pytest.raises(KeyError):
        keyed(catalog, **SMALL).write(breaking())
    assert list(disk.iterdir()) == []
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    "limit",
    [
        {"write-buffer-spillable": "false"},
        {"write-buffer-spill.max-disk-size": "64 kb"},
        {"local-sort.max-num-file-handles": "2"},
    ],
    ids=lambda limit: next(iter(limit)),
)
def test_where_no_more_may_be_spilled_full_buffers_become_files(catalog, disk, limit):
    table = keyed(catalog, **SMALL, **limit)
    report = table.write(batches(20))
    assert report.files > 3
    assert content(table) == newest(batches(20))
    assert list(disk.iterdir()) == []


def test_a_changelog_keeps_every_spilled_row_in_order(catalog, disk, tmp_path):
    import pyarrow.parquet as pq

    table = keyed(catalog, **SMALL, **{"changelog-producer": "input"})
    table.write(batches(12))
    kept = [pq.read_table(path) for path in sorted(tmp_path.rglob("changelog-*"))]
    assert sum(table.num_rows for table in kept) == 12 * BATCH_ROWS
    for rows in kept:
        pairs = list(zip(rows["id"].to_pylist(), rows["_SEQUENCE_NUMBER"].to_pylist(), strict=True))
        assert pairs == sorted(pairs)


def test_one_key_may_have_more_rows_than_any_piece_of_a_run(catalog, disk):
    table = keyed(catalog, **SMALL)
    table.write(batches(30, keys=2))
    assert content(table) == newest(batches(30, keys=2))


def test_a_user_sequence_is_kept_across_runs(catalog, disk):
    table = catalog.create_table(
        "shop.seq",
        [("id", "BIGINT"), ("n", "BIGINT"), ("note", "STRING")],
        primary_key=["id"],
        options={"bucket": "1", "sequence.field": "n", **SMALL},
    )
    table.write(list(batches(20))[::-1])
    assert content(table) == newest(batches(20))


def wide_batches(count: int):
    """Rows of about a hundred bytes, no key twice."""
    notes = pa.array(["x" * 80] * 10_000)
    random = numpy.random.default_rng(3)
    for _ in range(count):
        yield pa.table(
            {"id": random.integers(0, 2**62, len(notes)), "n": [0] * 10_000, "note": notes}
        )


def test_memory_does_not_grow_with_the_rows(catalog, disk, monkeypatch):
    table = keyed(catalog, **{"write-buffer-size": "4 mb", "bucket": "1"})
    peaks = []
    usual = pa.default_memory_pool()
    for count in (20, 60):
        counting = pa.proxy_memory_pool(usual)
        monkeypatch.setattr(pa, "system_memory_pool", lambda pool=counting: pool)
        pa.set_memory_pool(counting)
        try:
            table.write(wide_batches(count))
        finally:
            pa.set_memory_pool(usual)
        peaks.append(counting.max_memory())
    assert peaks[1] < 1.5 * peaks[0]  # of three times as many rows


def test_a_disk_without_room_is_named_and_nothing_is_written(catalog, disk, tmp_path, monkeypatch):
    table = keyed(catalog, **SMALL)
    disk.rmdir()
    with pytest.raises(lake.UnavailableError, match=r"temporary files in .*disk.*set TMPDIR"):
        table.write(batches(20))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_single_large_batch_is_spilled_in_pieces(catalog, disk, tmp_path):
    table = keyed(catalog, **SMALL)
    writer = table.new_writer()
    whole = pa.concat_tables(batches(20)).combine_chunks()
    writer.write(whole)
    assert len(list(disk.rglob("*.arrow"))) > 3
    table.commit(writer.prepare())
    assert content(table) == newest([whole])


def test_what_a_killed_process_left_is_removed_by_the_next_one_that_spills(catalog, disk):
    left = disk / "lake-spill-of-the-dead"
    left.mkdir()
    (left / "1.arrow").write_bytes(b"rows")
    (disk / "lake-spill-file").touch()
    (disk / "other").mkdir()
    keyed(catalog, **SMALL).write(batches(20))
    assert sorted(path.name for path in disk.iterdir()) == ["lake-spill-file", "other"]


def test_what_a_living_writer_has_spilled_is_left_alone(catalog, disk):
    table = keyed(catalog, **SMALL)
    first = table.new_writer()
    first.write(batches(20))
    spilled = sorted(disk.rglob("*.arrow"))
    table.write(batches(20, seed=6))
    assert sorted(disk.rglob("*.arrow")) == spilled != []
    first.abort()
    assert list(disk.iterdir()) == []
