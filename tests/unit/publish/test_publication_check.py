"""``check_publication`` compares the rows of readers with those of the published files."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.iceberg.metadata.manifest import read_entries
from lakeformat.iceberg.metadata.manifest_list import read_manifest_list
from lakeformat.iceberg.metadata.manifest_writer import ManifestWriter
from lakeformat.publish.check.check import check_publication
from lakeformat.publish.check.readers import READERS, Reader, ReaderLimit
from lakeformat.publish.place import versions_of
from lakeformat.storage import MemoryStorage
from tests.unit.publish.published import KEYED, iceberg, published_table, rows_of, unobserved, uuids

COLUMNS = [("id", "BIGINT"), ("note", "STRING"), ("parts", "ARRAY<ROW<a INT>>")]
ROWS = rows_of(id=[1, 2], note=["a", None], parts=[[{"a": 1}], []])


@pytest.fixture
def storage(request) -> MemoryStorage:
    return MemoryStorage(request.node.name)


def pyiceberg(report: lake.PublicationCheckReport):
    return next(each for each in report.readers if each.reader == "PyIceberg")


def test_pyiceberg_has_the_rows_of_the_published_files_on_any_storage(storage):
    table = published_table(storage, COLUMNS, **KEYED)
    object.__setattr__(table._handle, "environment", uuids(7))
    table.write(ROWS)
    table.compact(strategy="full")
    table.write(rows_of(id=[3], note=["later"], parts=[[]]))
    report = lake.check_publication(table)
    assert (report.rows, report.snapshot_id, report.failed) == (2, 3, ())
    assert (pyiceberg(report).outcome, pyiceberg(report).rows) == ("equal", 2)
    assert report.reason.startswith("snapshot 3 has 2 rows in its published files; equal: PyIceb")
    names = [each.reader for each in report.readers]
    assert names == ["PyIceberg", "DuckDB", "Iceberg-Rust", "ClickHouse"]


def test_pyiceberg_reads_the_external_files_that_the_catalog_allows(tmp_path):
    outside = (tmp_path / "fast").as_uri()
    catalog = lake.open_catalog(str(tmp_path / "wh"), options={"external-roots": outside})
    catalog.create_database("shop")
    options = {
        "metadata.iceberg.storage": "table-location",
        "data-file.external-paths": f"{outside}/orders",
        "data-file.external-paths.strategy": "round-robin",
    }
    table = catalog.create_table("shop.orders", COLUMNS, options=options)
    table.write(ROWS)
    report = lake.check_publication(table)
    assert (report.failed, pyiceberg(report).rows) == ((), 2)


def test_a_publication_that_is_behind_fails_although_its_rows_are_right(storage):
    table = published_table(storage, COLUMNS)
    object.__setattr__(table._handle, "environment", uuids(7))
    table.write(ROWS)
    unobserved(table).write(ROWS)
    report = lake.check_publication(table)
    assert pyiceberg(report).outcome == "equal"
    [problem] = report.failed
    assert "1 snapshot behind" in problem


def test_other_missing_and_repeated_rows_of_a_reader_are_counted(storage):
    table = published_table(storage, COLUMNS)
    table.write(ROWS)
    other = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(0, 1)])

    def refuses(_):
        raise RuntimeError("cannot read this\nfile")

    readers = [
        Reader("right", (), lambda _: ROWS.to_batches(), needs_local_files=False),
        Reader("wrong", (), lambda _: other.to_batches(), needs_local_files=False),
        Reader("broken", (), refuses, needs_local_files=False),
        Reader("absent", ("no_such_package",), refuses, needs_local_files=False),
        Reader("local", (), refuses),
    ]
    report = check_publication(table, readers)
    assert [str(each) for each in report.readers] == [
        "right: equal",
        "wrong: 1 missing row, 1 other row",
        "broken: failed: RuntimeError: cannot read this file",
        "absent: not installed: pip install no_such_package",
        "local: not checked: it gets no credentials, so it reads only tables on local disks",
    ]
    assert report.failed == tuple(map(str, report.readers[1:3]))


def test_a_table_without_publication_is_refused_and_an_empty_one_has_nothing_to_check(storage):
    table = published_table(storage, COLUMNS)
    assert lake.check_publication(table).reason == "no snapshot is published"
    with pytest.raises(lake.InvalidRequestError, match="does not publish Iceberg metadata"):
        lake.check_publication(unobserved(table))


def test_a_known_limit_of_a_reader_is_no_failure_of_the_table(storage):
    table = published_table(storage, COLUMNS)
    table.write(ROWS)

    def refuses(_):
        raise RuntimeError("no vectors here")

    def limit(error: str, *, applies: bool = True) -> ReaderLimit:
        return ReaderLimit(f"reads no {error or 'rows'}", lambda _: applies, error)

    def reader(name: str, read, *limits: ReaderLimit) -> Reader:
        return Reader(name, (), read, needs_local_files=False, limits=limits)

    readers = [
        reader("refuses", refuses, limit("maps"), limit("vectors")),
        reader("differs", lambda _: [], limit("")),
        reader("another error", refuses, limit("maps"), limit("")),
        reader("another table", refuses, limit("vectors", applies=False)),
        reader("no error", lambda _: [], limit("vectors")),
        reader("reads it", lambda _: ROWS.to_batches(), limit("")),
    ]
    report = check_publication(table, readers)
    assert [each.outcome for each in report.readers] == [
        *("known limit", "known limit", "failed", "failed", "differ", "equal")
    ]
    assert [each.reason for each in report.readers[:2]] == ["reads no vectors", "reads no rows"]
    assert report.readers[1].missing_rows == 2
    assert report.failed == tuple(map(str, report.readers[2:5]))


@pytest.mark.parametrize("version", ["2", "3"])
def test_clickhouse_is_not_asked_to_read_vectors_and_duckdb_not_to_keep_nanoseconds(
    storage, version
):
    options = {"deletion-vectors.enabled": "true", "metadata.iceberg.format-version": version}
    kinds = [("id", "BIGINT"), ("at", "TIMESTAMP(9)" if version == "3" else "TIMESTAMP(6)")]
    table = published_table(storage, kinds, options=options)
    duckdb, clickhouse = READERS[1], READERS[3]
    error = "DB::Exception: Position deletes are supported only for parquet format. (X)"
    limits = []
    for change in (lambda: table.write(pa.table({"id": [1, 2]})), lambda: table.delete("id = 1")):
        change()
        metadata = iceberg(table)._loaded().metadata
        found = clickhouse.limit_of(metadata, error), duckdb.limit_of(metadata)
        limits.append([each is not None for each in found])
    has_limits = version == "3"
    assert limits == [[False, has_limits], [has_limits, has_limits]]


def test_a_file_that_no_publication_wrote_and_a_missing_one_are_named(storage):
    table = published_table(storage, COLUMNS)
    table.write(ROWS)
    assert check_publication(table, ()).failed == ()
    loaded = versions_of(table._handle).newest()
    assert loaded is not None
    shown = loaded.metadata.current_snapshot
    assert shown is not None
    [manifest] = read_manifest_list(loaded.places, shown).column("manifest_path").to_pylist()
    ((_, entries),) = read_entries(
        loaded.places, loaded.metadata, read_manifest_list(loaded.places, shown)
    ).items()
    elsewhere = pa.array(["s3://other/data.parquet"] * len(entries), pa.string())
    place = entries.schema.get_field_index("file_path")
    forged = entries.set_column(place, entries.schema.field(place), elsewhere)
    writer = ManifestWriter(loaded.metadata, loaded.metadata.partition_specs[0], of_deletes=False)
    storage.overwrite(loaded.places.place(manifest)[1], writer.encode(forged))
    [problem] = check_publication(table, ()).failed
    assert (
        "names 1 file that the table does not publish, such as s3://other/data.parquet" in problem
    )
    assert "does not name 1 published file, such as memory://" in problem
    assert "then run `lake publish shop.orders`" in problem


def test_all_files_are_named_in_tables_of_every_kind(storage):
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    keys = {"primary_key": ["part", "id"], "partition_by": ["part"]}
    table = published_table(storage, [("id", "INT"), ("part", "INT")], options=options, **keys)
    for number in range(3):
        ids = pa.array([number, 7], pa.int32())
        table.write(pa.table({"id": ids, "part": pa.array([1, 2], pa.int32())}))
        table.compact(strategy="minor")
    assert check_publication(table, ()).failed == ()
