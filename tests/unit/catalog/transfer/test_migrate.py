"""Directories of plain files become tables: where they lie, copied or converted, and why."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import lakeformat as lake
from lakeformat.catalog.transfer.ownership import MARK
from lakeformat.paimon.commit import transaction
from lakeformat.paimon.read.plan import plan_files

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["x", None]})


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(
        str(tmp_path / "warehouse"), options={"external-roots": str(tmp_path)}
    )
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def source(tmp_path) -> Path:
    return tmp_path / "plain"


def put(path: Path, rows: pa.Table = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (orc.write_table if path.suffix == ".orc" else pq.write_table)(rows, path)
    return path


def content(directory: Path) -> dict[str, bytes]:
    """All files but the mark that names their owner."""
    paths = [path for path in directory.rglob("*") if path.is_file() and path.name != MARK]
    return {str(path): path.read_bytes() for path in paths}


def how(report) -> dict[str, str]:
    return {each.file.rpartition("/")[2]: each.how for each in report.files}


def rows(table: lake.Table) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "part-0.snappy.parquet"])
def test_a_file_is_registered_where_it_lies_and_nothing_is_copied(catalog, source, name):
    put(source / name)
    before = content(source)
    report = lake.migrate_directory(catalog, str(source), "shop.new")
    table = catalog.table("shop.new")
    assert how(report) == {name: "registered"}
    assert rows(table) == sorted(ROWS.to_pylist(), key=str)
    assert content(source) == before
    [entry] = plan_files(table._handle, table.latest_snapshot())
    assert entry.file.external_path == f"file:{source / name}"


def test_directories_named_by_values_become_partitions(catalog, source):
    put(source / "dt=2024-01-31" / "h=1" / "a.parquet")
    put(source / "dt=2024-02-01" / "h=__HIVE_DEFAULT_PARTITION__" / "a.parquet")
    put(source / "dt=2024-02-01" / "h=2%2F3" / "a.parquet")
    report = lake.migrate_directory(
        catalog, str(source), "shop.new", partition_types={"dt": "DATE"}
    )
    table = catalog.table("shop.new")
    assert report.partition_by == ("dt", "h")
    assert [name for name, _ in report.columns] == ["id", "name", "dt", "h"]
    found = {(row["dt"], row["h"]) for row in rows(table)}
    days = date(2024, 1, 31), date(2024, 2, 1)
    assert found == {(days[0], "1"), (days[1], None), (days[1], "2/3")}
    assert table.scan(["h"], where="dt = '2024-01-31'").to_arrow()["h"].to_pylist() == ["1", "1"]


def test_the_table_is_written_to_compacted_and_expired_like_any_other(catalog, source):
    for number in range(6):
        put(source / "dt=2024-01-31" / f"{number}.parquet")
    lake.migrate_directory(catalog, str(source), "shop.new")
    table = catalog.table("shop.new")
    table.write(pa.table({"id": [9], "name": ["new"], "dt": ["2024-01-31"]}))
    before = rows(table)
    assert table.compact().files_in == 7
    assert rows(table) == before
    assert len(table.expire_partitions(expiration_time="1 d").expired) == 1


@pytest.mark.parametrize("place", ["a.parquet", "dt=2024-01-31/a.parquet"])
def test_a_reader_without_the_root_is_advised_to_allow_only_the_directory(catalog, source, place):
    put(source / place)
    lake.migrate_directory(catalog, str(source), "shop.orders")
    elsewhere = lake.open_catalog(catalog.location)
    with pytest.raises(lake.InvalidRequestError, match=f"lake --external-root file://{source}$"):
        elsewhere.table("shop.orders").scan().to_arrow()


def test_copies_belong_to_the_table_and_the_source_may_go(catalog, source):
    path = put(source / "a.parquet")
    report = lake.migrate_directory(catalog, str(source), "shop.new", copy=True)
    path.unlink()
    assert how(report) == {"a.parquet": "copied"}
    assert rows(catalog.table("shop.new")) == sorted(ROWS.to_pylist(), key=str)


def test_what_no_reader_would_find_or_tell_apart_is_copied(catalog, source):
    put(source / "part-0")
    put(source / "one" / "same.parquet")
    put(source / "two" / "same.parquet")
    report = lake.migrate_directory(catalog, str(source), "shop.new")
    assert {each.how for each in report.files} == {"copied"}
    assert len(rows(catalog.table("shop.new"))) == 6


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("INT", ("01", "1")),
        ("BOOLEAN", ("true", "TRUE")),
        ("DECIMAL(5, 2)", ("1.5", "1.50")),
        ("DOUBLE", ("1", "1.0")),
        ("INT", ("__HIVE_DEFAULT_PARTITION__", "__DEFAULT_PARTITION__")),
    ],
)
def test_a_name_in_two_directories_of_one_value_is_copied(catalog, source, kind, texts):
    for number, text in enumerate(texts):
        ids = pa.array([10 * number, 10 * number + 1], pa.int64())
        put(source / f"p={text}" / "part-0.parquet", pa.table({"id": ids}))
    report = lake.migrate_directory(
        *(catalog, str(source), "shop.new"),
        partition_types={"p": kind},
        options={"deletion-vectors.enabled": "true"},
    )
    assert [each.how for each in report.files] == ["copied", "copied"]
    table = catalog.table("shop.new")
    table.delete("id = 0")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 10, 11]


@pytest.mark.parametrize(
    ("kind", "text", "changed"),
    [
        ("INT", "1.9", "1"),
        ("DECIMAL(3, 2)", "1.256", "1.26"),
        ("FLOAT", "16777217", "1.6777216E7"),
        ("DOUBLE", "1e400", "Infinity"),
        ("DATE", "2024-01-31 10%3A30%3A00", "2024-01-31"),
        ("DATE", "2024", "read it as time"),
        ("DATE", "20240131", "read it as time"),
        ("DOUBLE", "0x1p3", ""),
        ("TIMESTAMP(3)", "2024-01-31 10%3A30%3A00.1234", "2024-01-31 10:30:00.123"),
        ("TIMESTAMP_LTZ(6)", "2024-01-31 10%3A30%3A00.1234567", "2024-01-31 10:30:00.123456"),
        ("TIMESTAMP(6)", "20240131", "read it as time"),
    ],
)
def test_a_directory_whose_value_its_type_would_change_is_refused(
    catalog, source, kind, text, changed
):
    put(source / f"p={text}" / "a.parquet")
    with pytest.raises(lake.InvalidRequestError, match=r"is not a value of partition") as error:
        lake.migrate_directory(catalog, str(source), "shop.new", partition_types={"p": kind})
    assert changed in str(error.value)
    assert catalog.list_tables("shop") == []


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("INT", "1.0", 1),
        ("DECIMAL(3, 2)", "1.250", Decimal("1.25")),
        ("DOUBLE", "0.10", 0.1),
        ("FLOAT", "0.10000000149011612", 0.10000000149011612),
        ("DOUBLE", "1e3", 1000.0),
        ("DATE", "2024-01-31 00%3A00%3A00.0", date(2024, 1, 31)),
        ("DATE", "9999-12-31", date(9999, 12, 31)),
        (
            "TIMESTAMP(3)",
            "2024-01-31 10%3A30%3A00.120000",
            datetime(2024, 1, 31, 10, 30, 0, 120000),
        ),
        ("TIMESTAMP(3)", "2024-01-31", datetime(2024, 1, 31)),
    ],
)
def test_a_directory_may_spell_its_value_in_another_way(catalog, source, kind, text, value):
    put(source / f"p={text}" / "a.parquet")
    lake.migrate_directory(catalog, str(source), "shop.new", partition_types={"p": kind})
    assert {row["p"] for row in rows(catalog.table("shop.new"))} == {value}


def test_files_of_other_columns_are_converted_without_changing_a_value(catalog, source):
    put(source / "a.parquet")
    put(source / "b.parquet", pa.table({"id": pa.array([3], pa.int32()), "name": ["y"]}))
    put(source / "c.parquet", pa.table({"id": pa.array([4], pa.int64())}))
    report = lake.migrate_directory(catalog, str(source), "shop.new")
    assert how(report) == {
        "a.parquet": "registered",
        "b.parquet": "converted",
        "c.parquet": "converted",
    }
    assert "int32" in report.files[1].reason
    assert [row["id"] for row in rows(catalog.table("shop.new"))] == [1, 2, 3, 4]


def published(catalog: lake.Catalog) -> list[dict]:
    """The rows that an Iceberg reader finds in the published table."""
    publishing = lake.set_option("metadata.iceberg.storage", "table-location")
    lake.publish_table(catalog.alter_table("shop.new", publishing))
    place = catalog.table("shop.new").location.removeprefix("file://")
    version = Path(place, "metadata", "version-hint.text").read_text()
    read = StaticTable.from_metadata(f"{place}/metadata/v{version}.metadata.json")
    return sorted(read.scan().to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ((0, 1), "has the columns of the table"),
        ((1, 2), "column 'id' has the field id 1, the table has 0"),
        ((0, None), "column 'name' has no field id, but other columns of the file have one"),
    ],
)
@pytest.mark.parametrize("copy", [True, False])
def test_files_with_the_field_ids_of_another_table_are_converted(
    catalog, source, ids, reason, copy
):
    fields = [
        field if each is None else field.with_metadata({"PARQUET:field_id": str(each)})
        for field, each in zip(ROWS.schema, ids, strict=True)
    ]
    put(source / "a.parquet", ROWS.cast(pa.schema(fields)))
    [file] = lake.migrate_directory(catalog, str(source), "shop.new", copy=copy).files
    if ids == (0, 1):
        assert file.how == "copied" if copy else "registered"
    else:
        assert (file.how, file.reason) == ("converted", reason)
    assert published(catalog) == rows(catalog.table("shop.new")) == ROWS.to_pylist()


@pytest.mark.parametrize("name", ["a.parquet", "a.orc"])
def test_a_file_with_its_own_partition_column_is_converted_and_gets_the_value_of_its_directory(
    catalog, source, name
):
    put(source / "h=1" / name, ROWS.append_column("h", pa.array([7, 7], pa.int32())))
    put(source / "h=1" / "b.parquet")
    report = lake.migrate_directory(catalog, str(source), "shop.new", partition_types={"h": "INT"})
    assert how(report) == {name: "converted", "b.parquet": "registered"}
    assert report.files[0].reason == (
        "it has the partition column 'h', whose value its directory names"
    )
    table = catalog.table("shop.new")
    assert table.scan(where="h = 1").to_arrow()["h"].to_pylist() == [1, 1, 1, 1]
    assert published(catalog) == rows(table)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([[1, 2]]), [[1, 2]]),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ns")), [datetime(2024, 1, 1)]),
        (pa.array(["x"]).dictionary_encode(), ["x"]),
        (pa.array(["x"], pa.large_string()), ["x"]),
        (pa.array([b"12"], pa.binary(2)), [b"12"]),
    ],
    ids=["nested", "nanoseconds", "dictionary", "large", "fixed"],
)
def test_every_way_to_store_a_column_ends_in_the_same_rows(catalog, source, column, expected):
    put(source / "a.parquet", pa.table({"c": column}))
    lake.migrate_directory(catalog, str(source), "shop.new")
    assert catalog.table("shop.new").scan().to_arrow()["c"].to_pylist() == expected


def test_bounds_of_numbers_and_days_leave_files_out_and_those_of_text_do_not(catalog, source):
    for number in range(3):
        days = [date(2024, 1, 1 + number)]
        put(source / f"{number}.parquet", pa.table({"id": [number], "d": days, "t": [f"{number}"]}))
    lake.migrate_directory(catalog, str(source), "shop.new")
    table = catalog.table("shop.new")

    def read(where: str) -> int:
        return sum(len(split.files) for split in table.scan(where=where).splits())

    assert (read("id = 1"), read("d > '2024-01-02'"), read("t = '1'")) == (1, 1, 3)
    assert table.scan(where="t = '1'").to_arrow()["id"].to_pylist() == [1]


def test_hidden_files_are_skipped_and_named(catalog, source):
    put(source / "a.parquet")
    put(source / "_temporary" / "b.parquet")
    (source / "_SUCCESS").write_text("")
    (source / ".part.crc").write_text("x")
    report = lake.migrate_directory(catalog, str(source), "shop.new")
    names = [path.rpartition("/")[2] for path in report.skipped]
    assert names == [".part.crc", "_SUCCESS", "_temporary"]
    assert len(report.files) == 1


def test_a_dry_run_tells_all_and_makes_no_table(catalog, source):
    put(source / "dt=1" / "a.parquet")
    planned = lake.migrate_directory(catalog, str(source), "shop.new", dry_run=True)
    assert catalog.list_tables("shop") == []
    done = lake.migrate_directory(catalog, str(source), "shop.new")
    assert (planned.files, planned.columns, planned.rows) == (done.files, done.columns, 2)


def test_a_second_time_does_nothing(catalog, source):
    put(source / "a.parquet")
    first = lake.migrate_directory(catalog, str(source), "shop.new")
    again = lake.migrate_directory(catalog, str(source), "shop.new")
    assert (first.replayed, again.replayed) == (False, True)
    assert len(catalog.table("shop.new").snapshots()) == 1


def test_an_empty_table_without_the_options_of_the_migration_is_left_alone(catalog, source):
    put(source / "a.parquet")
    catalog.create_table("shop.new", [("id", "BIGINT"), ("name", "STRING")])
    with pytest.raises(lake.AlreadyExistsError, match="no earlier attempt of this migration"):
        lake.migrate_directory(catalog, str(source), "shop.new")
    assert catalog.table("shop.new").latest_snapshot() is None


def test_an_option_that_was_changed_since_does_not_stop_a_repeat(catalog, source):
    put(source / "a.parquet")
    options = {"snapshot.num-retained.max": "20"}
    lake.migrate_directory(catalog, str(source), "shop.new", copy=True, options=options)
    catalog.alter_table("shop.new", lake.set_option("snapshot.num-retained.max", "30"))
    report = lake.migrate_directory(catalog, str(source), "shop.new", copy=True, options=options)
    assert report.replayed


@pytest.mark.parametrize("written", ["copied", "converted"])
def test_who_interrupts_right_after_the_commit_keeps_its_files(
    catalog, source, monkeypatch, written
):
    put(source / ("a.parquet" if written == "copied" else "a.orc"))
    if written == "converted":
        put(source / "b.parquet", ROWS.append_column("more", pa.array([1, 2], pa.int32())))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction, "write_hints", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lake.migrate_directory(catalog, str(source), "shop.new", copy=True)
    monkeypatch.undo()
    before = rows(catalog.table("shop.new"))
    report = lake.migrate_directory(catalog, str(source), "shop.new", copy=True)
    assert report.replayed
    assert rows(catalog.table("shop.new")) == before != []


def test_another_table_of_the_name_is_left_alone(catalog, source):
    put(source / "a.parquet")
    catalog.create_table("shop.new", [("id", "BIGINT"), ("name", "STRING")]).write(ROWS)
    with pytest.raises(lake.AlreadyExistsError, match=r"shop\.new"):
        lake.migrate_directory(catalog, str(source), "shop.new")
    assert len(catalog.table("shop.new").snapshots()) == 1


@pytest.mark.parametrize(
    ("files", "how", "why"),
    [
        ({}, {}, "no Parquet or ORC file"),
        ({"a.parquet": ROWS, "x.csv": None}, {}, "neither Parquet nor ORC"),
        ({"dt=1/a.parquet": ROWS, "h=1/b.parquet": ROWS}, {}, "h=1/b.parquet are h, but those of"),
        ({"dt=1/a.parquet": ROWS, "b.parquet": ROWS}, {}, "dt=1/a.parquet are dt, but those of"),
        (
            {"a.parquet": ROWS},
            {"partition_types": {"dt": "DATE"}},
            "partition_types (--partition) names 'dt', which is not a partition column",
        ),
        ({"dt=x/a.parquet": ROWS}, {"partition_types": {"dt": "DATE"}}, "'x' is not a value"),
        ({"dt=1/a.parquet": ROWS}, {"partition_types": {"dt": "DAY"}}, "DAY"),
        (
            {"a.parquet": ROWS},
            {"options": {"bucket": "4", "bucket-key": "id"}},
            "plain files have no buckets",
        ),
        ({"a.parquet": ROWS}, {"options": {"bukcet": "1"}}, "bukcet"),
        ({"a.parquet": ROWS, "schema/schema-0": None}, {}, "is a table already"),
        (
            {"a.parquet": ROWS, "b.parquet": pa.table({"id": ["text"]})},
            {},
            "do not fit together",
        ),
    ],
)
def test_what_makes_no_table_is_refused_with_the_reason(catalog, source, files, how, why):
    source.mkdir()
    for name, table in files.items():
        if table is not None:
            put(source / name, table)
        else:
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_text("id,name\n")
    with pytest.raises(lake.LakeError) as error:
        lake.migrate_directory(catalog, str(source), "shop.new", **how)
    assert why in str(error.value)
    assert catalog.list_tables("shop") == []


def test_a_damaged_file_is_named_before_anything_is_made(catalog, source):
    path = put(source / "a.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(lake.InvalidRequestError, match=r"a\.parquet"):
        lake.migrate_directory(catalog, str(source), "shop.new")
    assert catalog.list_tables("shop") == []


def test_a_directory_that_is_not_there_is_named(catalog, source):
    with pytest.raises(lake.NotFoundError, match="plain"):
        lake.migrate_directory(catalog, str(source), "shop.new")


def test_files_of_another_table_are_not_registered(catalog, tmp_path):
    """Else the expiry of the one would take the files of the other."""
    catalog.create_table("shop.a", ROWS.schema)
    put(tmp_path / "warehouse" / "shop.db" / "a" / "bucket-0" / "a.parquet")
    with pytest.raises(lake.InvalidRequestError, match=r"lies in .*shop\.db/a, which is a table"):
        lake.migrate_directory(
            catalog, str(tmp_path / "warehouse" / "shop.db" / "a" / "bucket-0"), "shop.b"
        )
    assert catalog.list_tables("shop") == ["a"]


@pytest.mark.parametrize(
    "sign",
    [
        "schema/schema-0",
        "metadata/version-hint.text",
        "metadata/00002-3f9c1d0e-5f5e-4b0e-8a55-0c6f3f1b2a77.metadata.json",
        "metadata/v7.metadata.json.gz",
        "_delta_log/00000000000000000000.json",
        ".hoodie/hoodie.properties",
    ],
)
@pytest.mark.parametrize(("place", "how"), [("t", "is"), ("t/data/p=1", "lies in"), ("", "holds")])
def test_files_of_a_table_of_another_kind_are_not_taken_for_its_rows(
    catalog, source, sign, place, how
):
    """Old files of the table may be deleted or replaced: only the table knows its rows."""
    put(source / "t" / "data" / "p=1" / "a.parquet")
    (source / "t" / sign).parent.mkdir()
    (source / "t" / sign).write_text("{}")
    with pytest.raises(lake.InvalidRequestError, match=rf"{how} .*a table already \({sign[:7]}"):
        lake.migrate_directory(catalog, str(source / place), "shop.new", copy=True)
    assert catalog.list_tables("shop") == []


def test_a_directory_that_only_sounds_like_one_of_a_table_is_migrated(catalog, source):
    put(source / "metadata" / "a.parquet")
    put(source / "schema" / "b.parquet")
    report = lake.migrate_directory(catalog, str(source), "shop.new")
    assert set(how(report).values()) == {"copied"}, "no entry can name a directory in between"


@pytest.mark.parametrize("place", ["", "dt=1", ".."], ids=["same", "below", "above"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_directory_is_registered_in_one_table_alone(catalog, tmp_path, place, dry_run):
    source = tmp_path / "all" / "x=1"
    put(source / "dt=1" / "a.parquet")
    lake.migrate_directory(catalog, str(source), "shop.a")
    again = str((source / place).resolve())
    with pytest.raises(lake.InvalidRequestError, match=r"registered in the table .*shop\.db/a"):
        lake.migrate_directory(catalog, again, "shop.b", dry_run=dry_run)
    assert catalog.list_tables("shop") == ["a"]
    report = lake.migrate_directory(catalog, again, "shop.b", copy=True)
    assert set(how(report).values()) == {"copied"}


def test_a_renamed_table_keeps_its_files_from_one_of_its_old_name(catalog, source):
    put(source / "a.parquet")
    lake.migrate_directory(catalog, str(source), "shop.a")
    catalog.rename_table("shop.a", "shop.b")
    with pytest.raises(lake.InvalidRequestError, match="copy=True"):
        lake.migrate_directory(catalog, str(source), "shop.a")


def test_a_mark_goes_with_a_migration_that_fails(catalog, source, monkeypatch):
    put(source / "a.parquet")

    def fail(*_: object, **__: object) -> None:
        raise lake.UnavailableError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr("lakeformat.catalog.transfer.migrate.commit_messages", fail)
        with pytest.raises(lake.UnavailableError):
            lake.migrate_directory(catalog, str(source), "shop.a")
    assert not (source / MARK).exists()
    lake.migrate_directory(catalog, str(source), "shop.a")
    assert (source / MARK).exists()
