"""A warehouse in a bucket, on an S3 server on loopback: every step by its job, on Spark."""

import json
import uuid
from collections import Counter

import boto3
import pytest

import lakeformat as lake
from lakeformat.storage import open_storage
from spark_jobs import (
    call,
    changelog,
    compact,
    expire_snapshots,
    ingest,
    read_changes,
    read_table,
    register,
    remove_orphans,
)
from tests.conformance.s3_server import ACCESS_KEY, SECRET_KEY, options_for, running_s3_server


@pytest.fixture(scope="module")
def endpoint():
    with running_s3_server() as address:
        yield address


@pytest.fixture
def bucket(endpoint):
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    name = f"lake-{uuid.uuid4()}"
    client.create_bucket(Bucket=name)
    yield name
    client.close()


def test_each_file_of_a_bucket_is_ingested_once_by_either_engine(spark, endpoint, bucket):
    options = options_for(endpoint)
    storage, root = open_storage(f"s3://{bucket}/incoming", options)

    def land(day, engine, **identity):
        request = {
            "warehouse": f"s3://{bucket}/warehouse",
            "catalog_options": options,
            "table": "shop.orders",
            "create": True,
            "source": f"s3://{bucket}/incoming/*.csv",
            "engine": engine,
            "commit_user": f"day-{day}",
            "commit_identifier": 1,
            "ingested_by": "land",
        }
        return ingest.run({**request, **identity}, spark)

    storage.create(f"{root}/1.csv", b"id\n1\n")
    first = land(1, "spark")
    storage.create(f"{root}/2.csv", b"id\n2\n")
    land(2, "python")
    storage.create(f"{root}/3.csv", b"id\n3\n")
    land(3, "spark")
    assert land(4, "spark")["skipped"]
    storage.overwrite(f"{root}/1.csv", b"id\n10\n")
    with pytest.raises(lake.InvalidRequestError, match="from 5 to 6 bytes"):
        land(5, "spark")
    land(1, "spark", commit_identifier=2, commit_replaces=first["snapshot_id"])

    table = lake.open_catalog(f"s3://{bucket}/warehouse", options=options).table("shop.orders")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3, 10]


def test_ingest_compact_changes_and_expiry_of_a_table_in_a_bucket(spark, endpoint, bucket):
    warehouse, options = f"s3://{bucket}/warehouse", options_for(endpoint)
    request = {
        "warehouse": warehouse,
        "catalog_options": options,
        "table": "shop.orders",
        "engine": "spark",
    }
    made = {
        "create": True,
        "primary_key": ["id"],
        "table_options": {"bucket": "2", "changelog-producer": "full-compaction"},
    }
    for number, note in enumerate(("new", "paid")):
        lines = (json.dumps({"id": each, "note": note}) for each in range(number, 100))
        storage, root = open_storage(f"s3://{bucket}/incoming", options)
        storage.create(f"{root}/{number}.jsonl", "\n".join(lines).encode())
        run = {"commit_user": "run", "commit_identifier": number}
        source = {"source": f"s3://{bucket}/incoming/{number}*.jsonl", **made, **run}
        first, again = (ingest.run({**request, **source}, spark) for _ in "ab")
        assert (first["replayed"], again["replayed"]) == (False, True)
        done = changelog.run(request, spark) if number else compact.run(request, spark)
        assert not done["skipped"], done["reason"]

    table = lake.open_catalog(warehouse, options=options).table("shop.orders")
    assert Counter(row.note for row in read_table(spark, table).collect()) == {"new": 1, "paid": 99}
    changes = Counter(row.rowkind for row in read_changes(spark, table, 2).collect())
    assert changes == {"-U": 99, "+U": 99}
    registered = register(spark, warehouse, options)
    frame = registered.read.format("lake").option("where", "note = 'paid'").load("shop.orders")
    assert frame.count() == 99
    assert endpoint not in frame._jdf.queryExecution().toString()
    assert SECRET_KEY not in frame._jdf.queryExecution().toString()

    gone = expire_snapshots.run({**request, "retain_max": 1, "retain_min": 1}, spark)
    assert [each.id for each in table.snapshots()] == [4], gone["reason"]
    left = remove_orphans.run({**request, "dry_run": True}, spark)
    assert left["skipped"], left["reason"]
    assert call(registered, "sys.compact", table="shop.orders")["files_in"] == 0
    assert table.scan().count() == 100
