"""Files that another engine may read itself: those with exactly the table's rows."""

import pyarrow as pa
import pytest

import lakeformat as lake

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "dt": ["a", "b"]})


@pytest.fixture
def catalog(tmp_path):
    allowed = {"external-roots": str(tmp_path / "plain")}
    made = lake.open_catalog(str(tmp_path / "warehouse"), options=allowed)
    made.create_database("shop")
    return made


def counts(scan):
    """The numbers of plain files, and of splits to merge."""
    found = scan.plain_files()
    return len(found.files), len(found.rest)


def keyed(catalog, **options):
    return catalog.create_table(
        "shop.orders", ROWS.schema, primary_key=["id"], options={"bucket": "1", **options}
    )


def test_files_of_an_append_table_are_plain(catalog):
    table = catalog.create_table("shop.orders", ROWS.schema, partition_by=["dt"])
    table.write(ROWS)

    assert counts(table.scan()) == (2, 0)
    assert {file.size_bytes > 0 for file in table.scan().plain_files().files} == {True}


def test_rows_that_may_have_to_be_merged_are_not(catalog):
    table = keyed(catalog)
    table.write(ROWS)
    table.write(ROWS)
    assert counts(table.scan()) == (0, 1)

    table.compact()
    assert counts(table.scan()) == (1, 0)


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_formats_than_parquet_are_not(catalog, file_format):
    table = catalog.create_table("shop.orders", ROWS.schema, options={"file.format": file_format})
    table.write(ROWS)

    assert counts(table.scan()) == (0, 1)


def test_files_from_before_a_column_was_renamed_are_not_where_it_is_asked_for(catalog):
    table = catalog.create_table("shop.orders", ROWS.schema)
    table.write(ROWS)
    table = catalog.alter_table("shop.orders", lake.rename_column("id", "number"))

    assert counts(table.scan()) == (0, 1)
    assert counts(table.scan(["dt"])) == (1, 0)
    assert counts(table.scan(["dt"], where="number > 1")) == (0, 1)


def test_files_with_deleted_rows_are_not(catalog):
    table = keyed(catalog, **{"deletion-vectors.enabled": "true"})
    table.write(ROWS)
    table.compact()
    table.write(ROWS.slice(0, 1), kinds=["-D"])
    table.compact(strategy="minor")
    scan = table.scan()

    plain = sum(file.size_bytes for file in scan.plain_files().files)

    assert scan.to_arrow()["id"].to_pylist() == [2]
    assert plain < sum(split.size_bytes for split in scan.splits())


def test_a_file_without_its_partition_column_is_not(catalog, tmp_path):
    folder = tmp_path / "plain" / "dt=a"
    folder.mkdir(parents=True)
    pa.parquet.write_table(ROWS.select(["id"]), folder / "part.parquet")
    lake.migrate_directory(catalog, str(tmp_path / "plain"), "shop.migrated")
    table = catalog.table("shop.migrated")

    assert counts(table.scan()) == (0, 1)
    assert counts(table.scan(["id"])) == (1, 0)


@pytest.mark.parametrize("stats", ["truncate(16)", "none", "counts"])
@pytest.mark.parametrize("keyed", [True, False])
def test_it_is_told_which_files_may_hold_nan(catalog, stats, keyed):
    keys = {"primary_key": ["id"]} if keyed else {"options": {"bucket": "-1"}}
    options = {"metadata.stats-mode": stats, **({"bucket": "1"} if keyed else {})}
    columns = [("id", "BIGINT"), ("ratio", "DOUBLE"), ("inside", "ROW<part FLOAT>")]
    table = catalog.create_table("shop.t", columns, **{**keys, "options": options})

    def said(*columns):
        return [file.may_hold_nan for file in table.scan(columns).plain_files().files]

    for ratio in (1.5, float("nan"), None):
        rows = {"id": [1], "ratio": pa.array([ratio], pa.float64()), "inside": [{"part": 1.0}]}
        table.write(pa.table(rows), overwrite={})
        if keyed:
            table.compact(strategy="full")
        knows = (ratio == 1.5 and stats == "truncate(16)") or (ratio is None and stats != "none")
        assert (said("id"), said("id", "ratio")) == ([False], [not knows])
        assert said("inside") == [True]


def test_files_with_two_columns_whose_names_differ_only_by_case_are_not(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT"), ("a", "STRING"), ("A", "INT")])
    table.write(pa.table({"id": [1], "a": ["x"], "A": pa.array([2], pa.int32())}))
    table = catalog.alter_table("shop.orders", lake.drop_column("A"))
    table.write(pa.table({"id": [2], "a": ["y"]}))

    assert counts(table.scan()) == (1, 1)
