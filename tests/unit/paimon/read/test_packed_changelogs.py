"""Changelogs that Flink packed into one file: read, kept, copied and removed as a whole."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakeformat as lake
from lakeformat.files.changelog_packs import packed_address, packed_part, real_name
from lakeformat.files.file_section import FileSection
from tests.golden.foreign import expected_of, unpack_foreign
from tests.packed_changelogs import pack_changelogs

UNIQUE = "909b567d-2df0-4ea0-bee7-b9277f30d711"
LONG_LIVED = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "changelog.num-retained.min": "1",
    "changelog.num-retained.max": "10",
}
OLD = datetime(2020, 1, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def orders(keyed_table):
    """Makes a table with a changelog and some commits, each of three rows."""

    def make(commits: int = 3, **options: str) -> lake.Table:
        columns = [("id", "BIGINT"), ("n", "INT")]
        settings = {"bucket": "3", "changelog-producer": "input", **options}
        table = keyed_table(columns, **settings)
        for number in range(commits):
            rows = {"id": [1, 2, 3], "n": [number + 1] * 3}
            table.write(pa.table(rows, schema=table.schema.arrow_schema()))
        return table

    return make


def changes(table: lake.Table, after: int, upto: int) -> list[tuple[str, int, int]]:
    return sorted(rows_of(table.changes(after, upto, "changelog").to_arrow()))


def rows_of(found: pa.Table) -> list[tuple[str, int, int]]:
    return [tuple(row.values()) for row in found.to_pylist()]


def packs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("compacted-changelog-*"))


def make_old(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (OLD, OLD))


def test_changes_come_out_of_a_file_that_flink_packed(tmp_path):
    table = lake.open_table(unpack_foreign("precommit_changelog", tmp_path))
    assert expected_of("precommit_changelog")["rows"] == 10
    assert changes(table, 3, 4) == [("+I", number, 3) for number in range(10)]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_each_part_has_the_rows_of_its_bucket_in_every_format(orders, file_format):
    table = orders(**{"file.format": file_format})
    before = changes(table, 0, 3)
    pack_changelogs(table, 2)
    assert changes(table, 0, 3) == before


def test_a_stream_delivers_packed_changelogs(orders):
    table = orders()
    pack_changelogs(table, 2, 3)
    stream = table.stream("from-snapshot", snapshot=2)
    delivered = [sorted(rows_of(each.to_arrow())) for each in stream]
    assert delivered == [[("+I", n, v) for n in (1, 2, 3)] for v in (2, 3)]


def test_a_condition_leaves_out_parts_of_a_packed_file(orders):
    table = orders()
    pack_changelogs(table, 1)
    found = table.changes(0, 1, "changelog", where="id = 2").to_arrow().to_pylist()
    assert [row["id"] for row in found] == [2]


def test_no_orphan_is_found_in_what_a_part_leads_to(orders, tmp_path):
    table = orders()
    pack_changelogs(table, 1, 2)
    make_old(tmp_path)
    table.expire_snapshots(retain_max=2, retain_min=1)  # the entry with the name of the file
    assert table.remove_orphans(older_than="1 d").orphan_files == 0
    assert len(packs(tmp_path)) == 1
    assert table.health(unknown=True).storage.unknown.files == 0


def test_a_packed_file_goes_with_the_last_snapshot_that_has_a_part(orders, tmp_path):
    table = orders()
    pack_changelogs(table, 1, 2)
    first = table.expire_snapshots(retain_max=2, retain_min=1)
    assert first.snapshots == (1,)
    assert len(packs(tmp_path)) == 1
    assert changes(table, 1, 2) == [("+I", n, 2) for n in (1, 2, 3)]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert packs(tmp_path) == []
    assert changes(table, 2, 3) == [("+I", n, 3) for n in (1, 2, 3)]


def test_an_expiry_counts_a_packed_file_once_with_all_its_bytes(orders, tmp_path):
    table = orders()
    path = pack_changelogs(table, 1, 2)
    size = os.path.getsize(path)
    report = table.expire_snapshots(retain_max=1, retain_min=1)
    assert report.deleted.to_dict()["files"]["changelog"] == 1
    assert report.deleted.sizes["changelog"] == size


def test_changelogs_that_outlive_their_snapshots_keep_a_packed_file(orders, catalog, tmp_path):
    def keep(count: int) -> lake.Table:
        kept = lake.set_option("changelog.num-retained.max", str(count))
        return catalog.alter_table("shop.orders", kept)

    table = orders(4, **LONG_LIVED)
    pack_changelogs(table, 1, 2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert changes(table, 0, 2) == [("+I", n, v) for n in (1, 2, 3) for v in (1, 2)]
    keep(3).expire_snapshots(retain_max=1, retain_min=1)
    assert len(packs(tmp_path)) == 1
    assert changes(table, 1, 2) == [("+I", n, 2) for n in (1, 2, 3)]
    keep(2).expire_snapshots(retain_max=1, retain_min=1)
    assert packs(tmp_path) == []


def test_a_snapshot_that_expires_leaves_the_part_of_an_older_changelog(orders, catalog):
    table = orders(3, **LONG_LIVED)
    pack_changelogs(table, 1, 2)
    table.expire_snapshots(retain_max=2, retain_min=1)
    together = lake.remove_option("changelog.num-retained.max")
    table = catalog.alter_table("shop.orders", together)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert changes(table, 0, 1) == [("+I", n, 1) for n in (1, 2, 3)]


def test_a_branch_keeps_the_parts_of_its_snapshots(orders, tmp_path):
    table = orders()
    pack_changelogs(table, 1, 2)
    table.tags.create("second", snapshot=2)
    table.branches.create("work", tag="second")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert len(packs(tmp_path)) == 1


def test_a_clone_has_the_packed_file_and_reads_it(orders, catalog, tmp_path):
    table = orders()
    pack_changelogs(table, 1, 2)
    lake.clone_table(table, catalog, "shop.copy", full=True)
    copy = catalog.table("shop.copy")
    assert changes(copy, 0, 3) == changes(table, 0, 3)
    assert len(packs(tmp_path / "shop.db" / "copy")) == 1


def test_a_packed_file_that_is_gone_is_named(orders):
    table = orders()
    path = pack_changelogs(table, 1)
    os.unlink(path)
    with pytest.raises(lake.CorruptTableError, match=r"compacted-changelog-.* is missing"):
        changes(table, 0, 1)


def test_a_packed_file_cut_short_is_an_error(orders):
    table = orders()
    path = pack_changelogs(table, 1)
    os.truncate(path, os.path.getsize(path) - 10)
    with pytest.raises(lake.CorruptTableError, match="compacted-changelog"):
        changes(table, 0, 1)


def test_a_name_says_where_its_bytes_are():
    part = packed_part(f"compacted-changelog-{UNIQUE}$0-1236-2469-1233.cc-parquet")
    assert (part.bucket, part.start, part.size) == (0, 2469, 1233)
    assert part.file_name == f"compacted-changelog-{UNIQUE}$0-1236.cc-parquet"
    own = packed_part(part.file_name)
    assert (own.bucket, own.start, own.size, own.file_name) == (0, 0, 1236, part.file_name)


@pytest.mark.parametrize(
    "name",
    [
        "changelog-a-0.parquet",
        f"compacted-changelog-{UNIQUE}-0.parquet",
        f"compacted-changelog-{UNIQUE}$0-1236.parquet",
        f"compacted-changelog-{UNIQUE}$0-1236-1.cc-parquet",
        f"compacted-changelog-{UNIQUE}$-1-1236.cc-parquet",
        "compacted-changelog-../x$0-1236-0-1.cc-parquet",
        f"compacted-changelog-{UNIQUE}$0-{'9' * 40}.cc-parquet",
    ],
)
def test_other_names_are_names_of_their_own(name):
    assert packed_part(name) is None
    assert real_name(name.encode()) == name.encode()


def test_an_address_leads_to_the_directory_of_the_file():
    name = f"compacted-changelog-{UNIQUE}$4-10-20-30.cc-orc"
    assert packed_address(f"s3://b/x/dt=1/bucket-7/{name}") == (
        f"s3://b/x/dt=1/bucket-4/compacted-changelog-{UNIQUE}$4-10.cc-orc"
    )
    assert packed_address("s3://b/x/bucket-7/data-1.orc") == "s3://b/x/bucket-7/data-1.orc"


@given(
    content=st.binary(max_size=50),
    start=st.integers(0, 60),
    size=st.integers(0, 60),
    steps=st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 2), st.integers(0, 60))),
)
def test_a_section_reads_as_a_file_with_its_bytes(content, start, size, steps):
    section = io.BufferedReader(FileSection(io.BytesIO(content), start, size), 8)
    model = io.BytesIO(content[start : start + size])
    for offset, whence, count in steps:
        target = max(offset + (0, model.tell(), len(model.getvalue()))[whence], 0)
        model.seek(target)
        section.seek(target)
        assert section.read(count) == model.read(count)
        assert section.tell() == model.tell()
