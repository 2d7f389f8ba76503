"""S3: the promises of every storage against a real server, and what is special about a bucket."""

from __future__ import annotations

import json
import os
import random

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.storage import LockedCreation, ProcessLock, object_markers, open_storage, resolve
from lakeformat.storage.base import LARGE_FILE
from lakeformat.storage.object_address import ObjectAddress
from lakeformat.storage.object_client import ObjectClient, open_client
from lakeformat.storage.object_input import READ_AHEAD
from lakeformat.storage.object_output import PART_BYTES
from lakeformat.storage.store_options import StoreConfig
from lakeformat.testing.storage_suite import StorageSuite
from spark_jobs import ingest
from tests.conformance.faulty_bucket import faulty_bucket
from tests.conformance.processes import processes
from tests.conformance.s3_server import ACCESS_KEY, SECRET_KEY
from tests.sampling import count


class TestS3Storage(StorageSuite):
    @pytest.fixture
    def storage(self, s3_endpoint, s3_bucket, monkeypatch):
        # The environment's own credentials, so that an address alone leads back.
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        return open_storage(f"s3://{s3_bucket}")[0]

    @pytest.fixture
    def root(self):
        return "warehouse"


class TestS3StorageUnderALock(StorageSuite):
    addressable = False

    @pytest.fixture
    def storage(self, s3_bucket, s3_options):
        storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
        return LockedCreation(storage, ProcessLock(), "shop.orders")

    @pytest.fixture
    def root(self):
        return "warehouse"


# Publication between processes

RACE = """
import json, sys
from lakeformat.storage import open_storage
root, racer, options = sys.argv[1:]
storage, path = open_storage(root, json.loads(options))
print("ready", flush=True)
sys.stdin.readline()
content = racer.encode() * 5000
print(json.dumps([n for n in range(20) if storage.create(f"{path}/snapshot-{n}", content)]))
"""


def test_of_racing_processes_one_publishes_each_name(s3_bucket, s3_client, s3_options):
    racers = [str(racer) for racer in range(8)]
    commands = [[RACE, f"s3://{s3_bucket}/s", racer, json.dumps(s3_options)] for racer in racers]
    with processes(commands) as running:
        won = race(running)
    assert sorted(n for names in won for n in names) == list(range(20))
    for racer, names in zip(racers, won, strict=True):
        for n in names:
            body = s3_client.get_object(Bucket=s3_bucket, Key=f"s/snapshot-{n}")["Body"].read()
            assert body == racer.encode() * 5000
    # No probe stays behind either.
    assert len(keys(s3_client, s3_bucket)) == 20


APPEND = """
import json, sys
import pyarrow as pa
from lakeformat.environment import SYSTEM
from lakeformat.paimon.layout import TableLayout
from lakeformat.storage import open_storage
from lakeformat.paimon.table import load_table
root, writer, times, options = sys.argv[1:]
storage, path = open_storage(root, json.loads(options))
table = load_table(storage, TableLayout(path), SYSTEM)
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(times)):
    table.write(pa.table({"id": pa.array([int(writer) * int(times) + n], pa.int64())}))
print(json.dumps([]))
"""


@pytest.mark.sampled(1, among="eight processes commit to a bucket")
def test_eight_processes_append_to_one_table(s3_bucket, s3_options):
    storage, root = open_storage(f"s3://{s3_bucket}/wh", s3_options)
    catalog = FileSystemCatalog(storage, root)
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.orders", [("id", "BIGINT")], options={"commit.max-retries": "100"}
    )
    location = f"s3://{s3_bucket}/wh/shop.db/orders"
    times = count(4, whole=10)
    commands = [[APPEND, location, str(n), str(times), json.dumps(s3_options)] for n in range(8)]
    with processes(commands) as running:
        race(running)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(8 * times))
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 8 * times + 1))


# Files of any size


def test_a_large_file_is_sent_in_parts(s3_bucket, s3_client, s3_options):
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    part = random.Random(0).randbytes(PART_BYTES // 3)
    with storage.open_output("large") as stream:
        for _ in range(8):
            stream.write(part)
        assert keys(s3_client, s3_bucket) == []
    assert storage.read("large", LARGE_FILE) == part * 8
    assert s3_client.head_object(Bucket=s3_bucket, Key="large")["ETag"].endswith('-3"')


def test_a_large_file_that_is_not_finished_leaves_no_parts(s3_bucket, s3_client, s3_options):
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)

    def fail() -> None:
        with storage.open_output("large") as stream:
            for _ in range(3):
                stream.write(bytes(PART_BYTES))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert keys(s3_client, s3_bucket) == []
    assert "Uploads" not in s3_client.list_multipart_uploads(Bucket=s3_bucket)


def test_a_large_file_does_not_replace_another(s3_bucket, s3_options):
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    storage.create("large", b"old")

    def write() -> None:
        with storage.open_output("large") as stream:
            for _ in range(5):
                stream.write(bytes(PART_BYTES))

    with pytest.raises(AlreadyExistsError, match="large"):
        write()
    assert storage.read("large") == b"old"


def test_a_file_that_is_replaced_while_it_is_read_is_refused(s3_bucket, s3_client, s3_options):
    """The requests for its ranges would get rows of both versions."""
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    s3_client.put_object(Bucket=s3_bucket, Key="a.csv", Body=b"a" * 3 * READ_AHEAD)
    with storage.open_input("a.csv") as stream:
        assert stream.read(1) == b"a"
        s3_client.put_object(Bucket=s3_bucket, Key="a.csv", Body=b"b" * 3 * READ_AHEAD)
        with pytest.raises(
            UnavailableError, match=r"a\.csv: another program replaced .*Read again"
        ):
            stream.read()
    with storage.open_input("a.csv") as stream:
        assert stream.read() == b"b" * 3 * READ_AHEAD


@pytest.mark.parametrize("etag", ['"x"', 'W/"x"', "x", None])
def test_an_unchanged_file_is_read_if_the_answer_to_get_writes_the_etag_in_another_way(etag):
    """A proxy that compresses answers makes ETags weak, as in ``W/"x"``."""
    with faulty_bucket() as bucket:
        bucket.etag_of_get, bucket.objects["a.csv"] = etag, b"a"
        options = {"s3.endpoint": bucket.endpoint, "s3.access-key": "k", "s3.secret-key": "s"}
        storage, _ = open_storage("s3://lake", options)
        with storage.open_input("a.csv") as stream:
            assert stream.read() == b"a"


# Directories that no bucket has


def test_the_marker_of_a_directory_is_an_ordinary_object(s3_bucket, s3_client, s3_options):
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    storage.make_directory("wh/shop.db")
    assert keys(s3_client, s3_bucket) == ["wh/.directory", "wh/shop.db/.directory"]


def test_the_markers_of_hadoop_are_directories_and_can_be_removed(s3_bucket, s3_client, s3_options):
    for key in ("wh/", "wh/shop.db/", "wh/shop.db/t/", "wh/shop.db/t/schema/", "wh/other.db/"):
        s3_client.put_object(Bucket=s3_bucket, Key=key, Body=b"")
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    storage.create("wh/shop.db/t/schema/schema-0", b"{}")
    assert [(info.name, info.is_directory) for info in storage.list("wh")] == [
        ("other.db", True),
        ("shop.db", True),
    ]
    assert [info.name for info in storage.list("wh/shop.db/t/schema")] == ["schema-0"]
    assert storage.list("wh/other.db") == []
    storage.delete_directory("wh/shop.db")
    assert not storage.directory_exists("wh/shop.db")
    assert keys(s3_client, s3_bucket) == ["wh/", "wh/other.db/"]


def fail_to_connect(**options) -> None:
    raise OSError("curlCode: 7, Couldn't connect to server")


@pytest.mark.parametrize("client", ["fails, as behind a proxy", "is not built"])
def test_the_markers_of_hadoop_are_removed_without_the_client_of_arrow(
    s3_bucket, s3_client, s3_options, monkeypatch, client
):
    for key in ("t/", "t/a/", "t/a=b c+%20é/", "t/a=b c+%20é/x/", "t2/", "u/"):
        s3_client.put_object(Bucket=s3_bucket, Key=key, Body=b"")
    s3_client.put_object(Bucket=s3_bucket, Key="t/kept/", Body=b"1")
    if client == "is not built":
        monkeypatch.delattr("pyarrow.fs.S3FileSystem")
    else:
        monkeypatch.setattr("pyarrow.fs.S3FileSystem", fail_to_connect)
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    storage.create("t/file", b"1")
    with pytest.raises(UnavailableError, match=r"an object is still there.* ends in a slash"):
        storage.delete_directory("t")
    assert keys(s3_client, s3_bucket) == ["t/kept/", "t2/", "u/"]


def test_an_object_with_content_and_the_name_of_a_directory_is_reported(
    s3_bucket, s3_client, s3_options
):
    s3_client.put_object(Bucket=s3_bucket, Key="t/x/", Body=b"1")
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    storage.create("t/y", b"1")
    with pytest.raises(UnavailableError, match=r"an object is still there.* ends in a slash"):
        storage.delete_directory("t")
    assert keys(s3_client, s3_bucket) == ["t/x/"]
    s3_client.delete_object(Bucket=s3_bucket, Key="t/x/")
    storage.delete_directory("t")


@pytest.mark.parametrize("stray", ["bucket-0//stray", "bucket-0/./stray", "bucket-0/a\x01b"])
def test_an_object_with_an_unreadable_name_stops_only_its_directory(
    s3_bucket, s3_client, s3_options, stray
):
    catalog = lake.open_catalog(f"s3://{s3_bucket}/wh", options=s3_options)
    catalog.create_database("shop")
    for name in ("shop.orders", "shop.other"):
        catalog.create_table(name, [("id", "BIGINT")]).write(pa.table({"id": [1]}))
    s3_client.put_object(Bucket=s3_bucket, Key=f"wh/shop.db/orders/{stray}", Body=b"x")
    assert catalog.list_tables("shop") == ["orders", "other"]
    assert catalog.table("shop.orders").scan().count() == 1
    catalog.drop_table("shop.other")
    with pytest.raises(InvalidRequestError, match=r"orders/bucket-0/.*Delete or rename"):
        catalog.drop_table("shop.orders")
    assert catalog.table("shop.orders").scan().count() == 1
    s3_client.delete_object(Bucket=s3_bucket, Key=f"wh/shop.db/orders/{stray}")
    catalog.drop_table("shop.orders")
    assert catalog.list_tables("shop") == []


def test_an_empty_directory_is_removed_with_its_marker_of_hadoop(s3_bucket, s3_client, s3_options):
    for key in ("wh/a b=%+é/", "wh/a b=%+é/x/", "wh/other/"):
        s3_client.put_object(Bucket=s3_bucket, Key=key, Body=b"")
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    assert storage.remove_empty_directory("wh/a b=%+é") is False
    assert len(keys(s3_client, s3_bucket)) == 3
    assert storage.remove_empty_directory("wh/a b=%+é/x") is True
    assert storage.remove_empty_directory("wh/a b=%+é") is True
    assert keys(s3_client, s3_bucket) == ["wh/other/"]


def test_a_file_written_while_a_marker_of_hadoop_is_removed_is_kept(
    s3_bucket, s3_client, s3_options, monkeypatch
):
    s3_client.put_object(Bucket=s3_bucket, Key="t/bucket-0/", Body=b"")
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    ask = storage.directory_exists

    def ask_and_write(path: str) -> bool:
        found = ask(path)
        storage.overwrite("t/bucket-0/data", b"x")
        return found

    monkeypatch.setattr(storage, "directory_exists", ask_and_write)
    assert storage.remove_empty_directory("t/bucket-0") is False
    assert keys(s3_client, s3_bucket) == ["t/bucket-0/data"]


@pytest.mark.parametrize("is_option", [True, False])
def test_a_marker_of_hadoop_is_removed_if_the_endpoint_names_the_bucket(
    s3_bucket, s3_client, s3_endpoint, s3_options, monkeypatch, is_option
):
    s3_client.put_object(Bucket=s3_bucket, Key="t/", Body=b"")
    s3_client.put_object(Bucket=s3_bucket, Key=f"{s3_bucket}/t/", Body=b"another object")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{s3_endpoint}/{s3_bucket}")
    options = {name: value for name, value in s3_options.items() if name != "s3.endpoint"}
    if is_option:
        options["s3.path.style.access"] = "false"
    else:
        monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
    storage, _ = open_storage(f"s3://{s3_bucket}", options)
    assert storage.remove_empty_directory("t") is True
    assert keys(s3_client, s3_bucket) == [f"{s3_bucket}/t/"]


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"s3.endpoint": "https://h/x"}, "https://h/x/lake/t/a%3D1"),
        (
            {"s3.endpoint": "https://h/x", "s3.path.style.access": "false"},
            "https://lake.h/x/t/a%3D1",
        ),
        ({"s3.region": "eu-west-1"}, "https://s3.eu-west-1.amazonaws.com/lake/t/a%3D1"),
        # The alias of an access point is accepted only in the host name.
        (
            {"s3.region": "eu-west-1", "s3.path.style.access": "false"},
            "https://lake.s3.eu-west-1.amazonaws.com/t/a%3D1",
        ),
    ],
)
def test_the_marker_of_hadoop_has_the_address_of_its_directory(monkeypatch, options, address):
    opened = []

    def note(address: ObjectAddress, config: StoreConfig) -> ObjectClient:
        opened.append(open_client(address, config))
        return opened[-1]

    storage, _ = open_storage("s3://lake", options)
    monkeypatch.setattr(object_markers, "open_client", note)
    monkeypatch.setattr("obstore.delete", lambda store, name: None)
    object_markers.delete_foreign_marker(storage.client, "t/a=1")
    sender = opened[-1].patient.config
    assert (sender["endpoint"], sender["virtual_hosted_style_request"]) == (address, "true")


def test_a_marker_of_hadoop_that_is_already_removed_is_no_error():
    """Some stores answer 404; S3 answers 204."""
    with faulty_bucket() as bucket:
        bucket.delete_status = 404
        options = {"s3.endpoint": bucket.endpoint, "s3.access-key": "k", "s3.secret-key": "s"}
        storage, _ = open_storage("s3://lake", options)
        object_markers.delete_foreign_marker(storage.client, "t")
        assert [(verb, key) for verb, key, _ in bucket.requests] == [("DELETE", "t")]


def test_a_directory_of_many_files_is_listed_and_removed_whole(s3_bucket, s3_client, s3_options):
    for n in range(1001):
        s3_client.put_object(Bucket=s3_bucket, Key=f"t/{n:04}", Body=b"")
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    assert len(storage.list("t")) == 1001
    storage.delete_directory("t")
    assert keys(s3_client, s3_bucket) == []


# Who asks, and where


def test_an_ingested_object_is_recognised_by_its_etag(s3_bucket, s3_client, s3_options):
    """Put again with the same content it is the same file; with other content it is refused."""
    request = {
        "warehouse": f"s3://{s3_bucket}/warehouse",
        "table": "shop.orders",
        "source": f"s3://{s3_bucket}/incoming/*.csv",
        "checkpoint": f"s3://{s3_bucket}/checkpoint",
        "catalog_options": s3_options,
        "create": True,
    }
    for content, rows in ((b"id\n1\n", 1), (b"id\n1\n", 0)):
        s3_client.put_object(Bucket=s3_bucket, Key="incoming/a.csv", Body=content)
        assert ingest.run(request)["report"]["files_taken"] == rows
    s3_client.put_object(Bucket=s3_bucket, Key="incoming/a.csv", Body=b"id\n2\n")
    with pytest.raises(InvalidRequestError, match=r"a\.csv has changed .*its ETag"):
        ingest.run(request)


def test_a_bucket_that_is_missing_is_named(s3_options):
    storage, _ = open_storage("s3://lake-no-such-bucket", s3_options)
    for operation in (storage.read, storage.list, storage.directory_exists):
        with pytest.raises(NotFoundError, match=r"lake-no-such-bucket.*Create the bucket"):
            operation("wh")
    with pytest.raises(NotFoundError, match="Create the bucket"):
        storage.create("wh/x", b"")


def test_the_endpoint_of_the_options_comes_before_the_environment(
    s3_bucket, s3_options, monkeypatch
):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    assert storage.create("x", b"x")


def test_a_file_elsewhere_is_opened_with_the_options_of_its_table(s3_bucket, s3_client, s3_options):
    s3_client.create_bucket(Bucket=f"{s3_bucket}-2")
    s3_client.put_object(Bucket=f"{s3_bucket}-2", Key="dt=a%3Ab/f", Body=b"x")
    near, _ = open_storage(f"s3://{s3_bucket}/wh", s3_options)
    for scheme in ("s3", "s3a"):
        assert resolve(f"{scheme}://{s3_bucket}/other", near) == (near, "other")
    storage, path = resolve(f"s3://{s3_bucket}-2/dt=a%3Ab/f", near)
    assert storage.read(path) == b"x"


def test_a_forked_process_is_told_so(s3_bucket, s3_options):
    storage, _ = open_storage(f"s3://{s3_bucket}", s3_options)
    storage.create("x", b"x")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            storage.read("x")
        except UnavailableError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        assert "forked" in answer.read()


def keys(client, bucket: str) -> list[str]:
    return [item["Key"] for item in client.list_objects_v2(Bucket=bucket).get("Contents", [])]


def race(running) -> list[list[int]]:
    """Start all at once; what each has won."""
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.stdout.readline()) for process in running]
