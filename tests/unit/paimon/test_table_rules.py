"""Rules for new tables: valid combinations of keys, buckets, files and places."""

from __future__ import annotations

import json

import pytest

import lakeformat as lake
from lakeformat.storage import open_storage

COLUMNS = [("id", "BIGINT"), ("dt", "DATE"), ("note", "STRING"), ("tags", "ARRAY<STRING>")]


def create(catalog: lake.Catalog, columns=COLUMNS, **wanted) -> lake.Table:
    return catalog.create_table("shop.orders", columns, **wanted)


def test_a_table_has_the_keys_it_was_given_and_its_primary_key_is_never_null(catalog):
    table = create(catalog, primary_key=["dt", "id"], partition_by=["dt"], options={"bucket": "4"})
    again = catalog.table("shop.orders").schema
    assert again == table.schema
    assert (again.primary_keys, again.partition_keys) == (("dt", "id"), ("dt",))
    assert [field.type.nullable for field in again.fields] == [False, False, True, True]


def test_keys_may_be_given_as_options_as_sql_engines_do(catalog):
    table = create(catalog, options={"primary-key": "id, dt", "partition": "dt", "bucket": "2"})
    assert (table.schema.primary_keys, table.schema.partition_keys) == (("id", "dt"), ("dt",))
    assert table.schema.options == {"bucket": "2"}


def test_a_schema_file_holds_keys_where_other_engines_look_for_them(catalog):
    table = create(catalog, primary_key=["id"], options={"bucket": "-2"})
    storage, root = open_storage(table.location)
    members = json.loads(storage.read(f"{root}/schema/schema-0"))
    assert members["primaryKeys"] == ["id"]
    assert members["partitionKeys"] == []
    assert members["fields"][0] == {"id": 0, "name": "id", "type": "BIGINT NOT NULL"}


def test_a_keyed_table_is_empty_at_first(catalog):
    table = create(catalog, primary_key=["id"], options={"bucket": "4"})
    assert table.scan().count() == 0


ALLOWED = [
    {"primary_key": ["id"]},
    {"primary_key": ["id"], "partition_by": ["dt"]},
    {"primary_key": ["id", "dt"], "options": {"bucket": "4", "bucket-key": "dt"}},
    {"primary_key": ["id"], "options": {"bucket": "4", "bucket-function.type": "mod"}},
    {"primary_key": ["id"], "options": {"file.format.per.level": "0:avro"}},
    {"primary_key": ["id"], "options": {"changelog-file.format": "avro"}},
    {"partition_by": ["dt", "note"]},
    {"options": {"bucket": "4", "bucket-key": "id"}},
    {"options": {"file.compression.zstd-level": "9", "file.format": "avro"}},
    {
        "options": {
            "file.compression.zstd-level": "9",
            "file.format": "orc",
            "file.compression": "lz4",
        }
    },
]


@pytest.mark.parametrize("wanted", ALLOWED, ids=str)
def test_what_java_allows_can_be_made(catalog, wanted):
    create(catalog, **wanted)
    assert catalog.list_tables("shop") == ["orders"]


def test_external_paths_that_the_caller_allows_can_be_named(tmp_path):
    catalog = lake.open_catalog(str(tmp_path), options={"external-roots": "s3://b"})
    catalog.create_database("shop")
    create(catalog, options={"data-file.external-paths": "s3://b/x"})
    assert catalog.list_tables("shop") == ["orders"]


def options(**wanted):
    texts = {key.replace("__", ".").replace("_", "-"): text for key, text in wanted.items()}
    return {"options": texts}


REFUSED = [
    ({"primary_key": ["nix"]}, "'nix', which is not a column; the columns are id, dt"),
    ({"primary_key": ["id", "id"]}, "primary_key names 'id' twice"),
    ({"partition_by": ["nix"]}, "partition_by names 'nix', which is not a column"),
    ({"partition_by": ["dt", "dt"]}, "partition_by names 'dt' twice"),
    ({"primary_key": "id"}, "primary_key must be a list of columns, got 'id'"),
    ({"partition_by": [1]}, "partition_by must be a list of names"),
    ({"primary_key": ["id"], **options(primary_key="id")}, "option 'primary-key', not both"),
    ({"partition_by": ["dt"], **options(partition="dt")}, "option 'partition', not both"),
    ({"primary_key": ["tags"]}, "'tags' is .*ARRAY.* cannot be in the primary key"),
    ({"partition_by": ["tags"]}, "'tags' is .*ARRAY.* cannot be in the partition keys"),
    (
        {"columns": [("id", "INT"), ("raw", "BYTES")], "partition_by": ["raw"]},
        "'raw' is BYTES, which cannot be in the partition keys: its values have no text",
    ),
    (
        {"primary_key": ["dt"], "partition_by": ["dt", "note"]},
        r"primary key \(dt\) has partition columns only",
    ),
    *(
        (
            {"primary_key": ["id"], "partition_by": ["dt"], **options(bucket=number)},
            r"\(id\) lacks the partition column \(dt\), .* or set 'bucket' to -1",
        )
        for number in ("4", "-2")
    ),
    (options(bucket="4"), "set 'bucket-key'"),
    (options(bucket="-2"), "only primary-key tables can postpone the choice of a bucket"),
    (options(bucket_key="id"), "'bucket-key' needs a number of buckets"),
    (options(bucket="4", bucket_key="nix"), "names 'nix', but the table has no such column"),
    (options(bucket="4", bucket_key="tags"), "names 'tags', but it is .*ARRAY"),
    (
        {"partition_by": ["dt"], **options(bucket="4", bucket_key="dt")},
        "names 'dt', but it is a partition column",
    ),
    (
        {"primary_key": ["id"], **options(bucket="4", bucket_key="note")},
        r"names 'note', but it is not in the primary key \(id\); choose from the columns id$",
    ),
    (
        options(bucket="4", bucket_key="note", bucket_function__type="mod"),
        r"'mod', which takes one INT or BIGINT column; the bucket key is \(note\)",
    ),
    (options(file__format="avro", file__compression="gzip"), "avro files have no compression"),
    (
        options(file__format="avro", file__compression="none"),
        "avro files have no compression 'none'; set 'file.compression' to one of .*null",
    ),
    (options(file__format="orc", file__compression="gzip"), "set 'file.compression' to one of"),
    (
        options(file__format="orc", file__compression__zstd_level="9"),
        "'file.compression.zstd-level' is '9', but .* compresses orc files only with level 1",
    ),
    (
        {"columns": [("at", "TIMESTAMP(9)")], **options(file__format="avro")},
        r"avro files cannot hold TIMESTAMP\(9\) of column 'at'; set 'file.format'",
    ),
    (
        {
            "columns": [("id", "INT"), ("at", "TIMESTAMP(9)")],
            "primary_key": ["id"],
            **options(file__format__per__level="3:avro"),
        },
        "column 'at'; set level 3 in 'file.format.per.level' to parquet",
    ),
    (
        {"primary_key": ["id"], **options(file__format="orc", changelog_file__compression="gzip")},
        "orc files have no compression 'gzip'; set 'changelog-file.compression'",
    ),
    (
        {
            "primary_key": ["id"],
            **options(file__format__per__level="0:avro", file__compression__per__level="0:lz4"),
        },
        "avro files have no compression 'lz4'; set level 0 in 'file.compression.per.level' to one",
    ),
    (
        options(file__format__per__level="0:avro"),
        "'file.format.per.level' is for tables with a pri",
    ),
    (options(changelog_file__format="avro"), "'changelog-file.format' is for tables with a primar"),
    (
        options(data_file__external_paths__strategy="round-robin"),
        "but 'data-file.external-paths' names no path",
    ),
    (
        options(
            data_file__external_paths="file:/x,s3://b",
            data_file__external_paths__strategy="specific-fs",
            data_file__external_paths__specific_fs="oss",
        ),
        "no path of 'data-file.external-paths' has the scheme 'oss'",
    ),
]


@pytest.mark.parametrize(("wanted", "reason"), REFUSED, ids=lambda part: str(part)[:60])
def test_what_cannot_be_is_refused_and_nothing_is_made(catalog, wanted, reason):
    with pytest.raises(lake.InvalidRequestError, match=reason):
        create(catalog, **wanted)
    assert catalog.list_tables("shop") == []


CHANGES = [
    ([lake.set_option("file.compression", "gzip")], "avro files have no compression 'gzip'"),
    ([lake.add_column("at", "TIMESTAMP(9)")], "avro files cannot hold"),
    ([lake.add_column("a b", "INT")], "may have only the letters"),
    ([lake.set_option("bucket", "4")], "set 'bucket-key'"),
    ([lake.set_option("data-file.external-paths.strategy", "round-robin")], "names no path"),
]


@pytest.mark.parametrize(("changes", "reason"), CHANGES, ids=lambda part: str(part)[:60])
def test_a_table_cannot_be_altered_into_one_that_could_not_be_made(catalog, changes, reason):
    before = create(catalog, options={"file.format": "avro"}).schema
    with pytest.raises(lake.InvalidRequestError, match=reason):
        catalog.alter_table("shop.orders", *changes)
    assert catalog.table("shop.orders").schema == before


def test_changes_are_judged_together_not_one_by_one(catalog):
    create(catalog, options={"file.format": "avro"})
    altered = catalog.alter_table(
        "shop.orders",
        lake.set_option("file.compression", "gzip"),
        lake.set_option("file.format", "parquet"),
    )
    assert altered.options.file_compression == "gzip"


def test_a_table_other_writers_made_otherwise_can_still_be_altered(catalog):
    table = create(catalog)
    storage, root = open_storage(table.location)
    path = f"{root}/schema/schema-0"
    foreign = {**json.loads(storage.read(path)), "options": {"file.format": "csv"}}
    storage.overwrite(path, json.dumps(foreign).encode())
    altered = catalog.alter_table("shop.orders", lake.update_comment("theirs"))
    assert altered.schema.comment == "theirs"
