"""Publishing in a bucket whose answers are late, lost or wrong: never twice, never another's."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.catalog import FileSystemCatalog
from lakeformat.environment import Environment
from lakeformat.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)
from lakeformat.storage import LockedCreation, ProcessLock, creation_proof, open_storage
from lakeformat.storage.object_output import PART_BYTES
from lakeformat.storage.object_store import ObjectStorage
from tests.conformance.faulty_bucket import PutFault, faulty_bucket

SECRET = "no-one-may-read-this"


@pytest.fixture
def bucket(monkeypatch):
    # The next bucket may get the port, and with it the reputation, of an earlier one.
    monkeypatch.setattr(creation_proof, "_verdicts", {})
    with faulty_bucket() as bucket:
        yield bucket


@pytest.fixture
def options(bucket):
    return {
        "s3.endpoint": bucket.endpoint,
        "s3.access-key": "key-id",
        "s3.secret-key": SECRET,
        "s3.connection.timeout": "3s",
    }


@pytest.fixture
def storage(bucket, options):
    storage, _ = open_storage("s3://lake", options)
    storage.create("probed", b"x")
    bucket.requests.clear()
    return storage


# The answer of one create


def test_a_taken_name_costs_one_request(storage, bucket):
    assert storage.create("s/1", b"first") is True
    assert storage.create("s/1", b"second") is False
    assert [verb for verb, _, _ in bucket.requests] == ["PUT", "PUT"]
    assert bucket.objects["s/1"] == b"first"


def test_an_empty_file_is_published_under_the_condition_too(storage, bucket):
    storage.create("s/1", b"first")
    assert storage.create("s/1", b"") is False
    assert bucket.objects["s/1"] == b"first"


def test_a_large_content_is_published_by_one_conditional_request(storage, bucket):
    storage.create("s/1", bytes(2 * PART_BYTES))
    assert [verb for verb, _, _ in bucket.requests] == ["PUT"]
    assert bucket.requests[0][2]["if-none-match"] == "*"


@pytest.mark.parametrize(
    ("fault", "is_there"),
    [
        (PutFault.LOST_ANSWER, True),
        (PutFault.BUSY, False),
        (PutFault.BUSY_AFTER_SUCCESS, True),
        (PutFault.SILENCE, False),
    ],
)
def test_no_clear_answer_leaves_the_outcome_open(storage, bucket, fault, is_there):
    bucket.put_faults = [fault]
    with pytest.raises(UnavailableError, match=r"Cannot publish s3://lake/s/1"):
        storage.create("s/1", b"x")
    # Asked once: a repeat would be refused because of its own first try.
    assert bucket.puts("s/1") == 1
    assert ("s/1" in bucket.objects) is is_there


def test_a_conflict_is_repeated_after_a_pause(bucket, storage):
    pauses = []
    environment = Environment(sleep_seconds=pauses.append, random_fraction=lambda: 0.0)
    bucket.put_faults = [PutFault.CONFLICT] * 3
    assert ObjectStorage(storage.client, environment=environment).create("s/1", b"x") is True
    assert pauses == [0.01, 0.02, 0.04]
    assert bucket.objects["s/1"] == b"x"


def test_a_conflict_with_a_winner_is_lost(bucket, storage):
    bucket.objects["s/1"] = b"another's"
    bucket.honours_conditions = False  # the fault answers first
    bucket.put_faults = [PutFault.CONFLICT]
    assert storage.create("s/1", b"ours") is False


def test_endless_conflicts_leave_the_outcome_open(bucket, storage):
    environment = Environment(sleep_seconds=lambda seconds: None)
    bucket.put_faults = [PutFault.CONFLICT] * 100
    with pytest.raises(UnavailableError, match=r"20 attempts.*Retry"):
        ObjectStorage(storage.client, environment=environment).create("s/1", b"x")


# A whole commit


@pytest.fixture
def table(options, request):
    storage, _ = open_storage("s3://lake", options)
    catalog = FileSystemCatalog(storage, "wh")
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders", [("id", "BIGINT")], options=getattr(request, "param", {})
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", [*PutFault][:-1])  # the last is an answer for good
def test_a_commit_is_there_once_whatever_the_store_answers(bucket, table, fault):
    bucket.faulty_names, bucket.put_faults = "snapshot-", [fault]
    table.write(pa.table({"id": [1]}))
    table.write(pa.table({"id": [2]}))
    assert bucket.put_faults == []
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2]


@pytest.mark.parametrize("table", [{"commit.max-retries": "1"}], indirect=True)
def test_a_commit_that_is_never_answered_says_so(bucket, table):
    table.write(pa.table({"id": [1]}))
    bucket.faulty_names, bucket.put_faults = "snapshot-", [PutFault.BUSY] * 100
    with pytest.raises(CommitOutcomeUnknownError):
        table.write(pa.table({"id": [2]}))
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


# The proof that a store refuses what it is told to refuse


def test_the_first_create_tries_the_store_out_and_leaves_nothing(bucket, options):
    storage, _ = open_storage("s3://lake", options)
    assert storage.create("t/schema/schema-0", b"{}") is True
    assert list(bucket.objects) == ["t/schema/schema-0"]
    probes = {key for verb, key, _ in bucket.requests if verb == "PUT"} - {"t/schema/schema-0"}
    assert [key.startswith("t/schema/.schema-0.") for key in probes] == [True]
    assert bucket.puts() == 3


def test_a_process_tries_a_bucket_out_once(bucket, options):
    for name in ("a", "b"):
        open_storage("s3://lake", options)[0].create(name, b"x")
    assert bucket.puts() == 2 + 2


@pytest.mark.parametrize(
    ("address", "more"),
    [
        ("s3://other", {}),
        ("abfss://lake@first.dfs.core.windows.net", {}),
        ("abfss://lake@second.dfs.core.windows.net", {}),
        ("abfss://other@second.dfs.core.windows.net", {}),
        ("s3://lake", {"s3.endpoint": "http://localhost:{port}"}),
    ],
)
def test_each_bucket_account_and_endpoint_is_tried_out(bucket, options, address, more):
    keys = {"azure.endpoint": bucket.endpoint, "azure.account-key": "c2VjcmV0"}
    for proven, given in (
        ("s3://lake", options),
        ("abfss://lake@zeroth.dfs.core.windows.net", keys),
    ):
        open_storage(proven, given)[0].create("proven", b"x")
    port = bucket.endpoint.rpartition(":")[2]
    more = {name: text.format(port=port) for name, text in more.items()}
    bucket.requests.clear()
    storage, _ = open_storage(address, (options if address.startswith("s3") else keys) | more)
    storage.create("a", b"x")
    assert bucket.puts() == 3


def test_opening_and_reading_try_nothing_out(bucket, options):
    storage, _ = open_storage("s3://lake", options)
    assert storage.exists("x") is False
    assert bucket.puts() == 0


@pytest.mark.parametrize("broken", ["ignores", "lies", "has none"])
def test_a_store_without_a_guarantee_is_refused_with_the_remedies(bucket, options, broken):
    break_conditions(bucket, broken)
    storage, _ = open_storage("s3://lake", options)
    for _ in range(2):
        with pytest.raises(
            UnsupportedError, match=r"lock\.enabled=true.*unsafe\.single-writer=true"
        ):
            storage.create("s/1", b"x")
    assert bucket.objects == {}


@pytest.mark.parametrize("broken", ["ignores", "lies", "has none"])
def test_rows_for_such_a_store_are_refused_before_any_is_uploaded(
    bucket, options, broken, monkeypatch
):
    alone = lake.open_catalog("s3://lake/wh", options={**options, "unsafe.single-writer": "true"})
    alone.create_database("shop")
    alone.create_table("shop.orders", [("id", "BIGINT")])
    there = set(bucket.objects)
    break_conditions(bucket, broken)
    monkeypatch.setattr(creation_proof, "_verdicts", {})  # another process
    bucket.requests.clear()
    table = lake.open_catalog("s3://lake/wh", options=options).table("shop.orders")
    with pytest.raises(UnsupportedError, match=r"Cannot publish s3://lake/wh/shop\.db/orders"):
        table.write(pa.table({"id": [1]}))
    assert set(bucket.objects) == there
    puts = {key for verb, key, _ in bucket.requests if verb == "PUT"}
    assert all(".snapshot-1." in key for key in puts)


def test_a_store_that_does_not_answer_the_probe_is_asked_again(bucket, options):
    storage, _ = open_storage("s3://lake", options)
    bucket.put_faults = [PutFault.BUSY]
    with pytest.raises(UnavailableError):
        storage.create("s/1", b"x")
    assert storage.create("s/1", b"x") is True


def test_a_probe_that_is_refused_after_success_is_trusted(bucket, options):
    storage, _ = open_storage("s3://lake", options)
    bucket.put_faults = [PutFault.REFUSED_AFTER_SUCCESS]
    assert storage.create("s/1", b"first") is True
    assert storage.create("s/1", b"second") is False
    assert bucket.objects == {"s/1": b"first"}


def test_a_store_that_refuses_a_free_name_is_not_trusted(bucket, options):
    storage, _ = open_storage("s3://lake", options)
    bucket.put_faults = [PutFault.REFUSED]
    with pytest.raises(UnsupportedError, match=r"refuses a conditional write although no object"):
        storage.create("s/1", b"first")


@pytest.mark.parametrize("broken", ["ignores", "lies", "has none"])
def test_under_a_lock_such_a_store_publishes(bucket, options, broken):
    break_conditions(bucket, broken)
    storage = LockedCreation(open_storage("s3://lake", options)[0], ProcessLock(), "shop.orders")
    assert storage.create("s/1", b"first") is True
    assert storage.create("s/1", b"second") is False
    assert bucket.objects == {"s/1": b"first"}


def test_a_single_writer_may_use_such_a_store(bucket, options):
    break_conditions(bucket, "ignores")
    storage, _ = open_storage("s3://lake", options | {"unsafe.single-writer": "true"})
    assert storage.create("s/1", b"first") is True
    assert storage.create("s/1", b"second") is False


# Files nobody else names


def test_a_repeat_that_meets_its_own_first_try_is_no_taken_name(storage, bucket):
    bucket.put_faults = [PutFault.BUSY_AFTER_SUCCESS]
    with storage.open_output("data/1") as stream:
        stream.write(b"rows")
    assert bucket.objects["data/1"] == b"rows"


def write_large(storage, path: str, meanwhile=lambda: None) -> None:
    with storage.open_output(path) as stream:
        for letter in (b"a", b"b", b"c"):
            stream.write(letter * PART_BYTES)
        meanwhile()


def test_an_upload_whose_last_answer_was_lost_is_complete(storage, bucket):
    bucket.completions = [True]
    write_large(storage, "large")
    assert bucket.objects["large"] == b"".join(n * PART_BYTES for n in (b"a", b"b", b"c"))


def test_an_upload_that_was_aborted_can_be_repeated(storage, bucket):
    bucket.completions = [False]
    with pytest.raises(UnavailableError, match=r"large: .*not know the upload.* Retry"):
        write_large(storage, "large")
    assert "large" not in bucket.objects
    write_large(storage, "large")
    assert len(bucket.objects["large"]) == 3 * PART_BYTES


def test_an_aborted_upload_is_not_complete_because_of_a_smaller_file(storage, bucket):
    bucket.completions = [False]
    smaller = {"large": b"of another program"}
    with pytest.raises(UnavailableError, match=r"This content was not written"):
        write_large(storage, "large", lambda: bucket.objects.update(smaller))
    assert bucket.objects["large"] == b"of another program"


def test_a_file_is_written_without_conditions_where_there_are_none(storage, bucket):
    bucket.put_faults = [PutFault.NO_SUCH_CALL]
    with storage.open_output("data/1") as stream:
        stream.write(b"rows")
    assert bucket.objects["data/1"] == b"rows"
    bucket.put_faults = [PutFault.NO_SUCH_CALL]
    with pytest.raises(AlreadyExistsError), storage.open_output("data/1") as stream:
        stream.write(b"other")


# Secrets


def test_no_message_log_or_text_shows_a_credential(storage, bucket, caplog):
    caplog.set_level(logging.DEBUG)
    bucket.put_faults = [PutFault.FORBIDDEN]
    with pytest.raises(
        UnavailableError,
        match=r"403 Forbidden.*Check the credentials.*Without the option s3\.endpoint",
    ) as caught:
        storage.create("s/1", b"x")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    shown = f"{caught.value}{storage!r}{storage.client!r}{storage.client.config!r}{caplog.text}"
    assert SECRET not in shown


def test_the_key_of_the_options_is_used_alone(bucket, options, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-another-key")
    storage, _ = open_storage("s3://lake", options)
    storage.overwrite("x", b"x")
    assert "Credential=key-id/" in bucket.requests[-1][2]["authorization"]
    assert "x-amz-security-token" not in bucket.requests[-1][2]


# The same condition in the words of the other stores


def test_google_and_azure_get_their_own_condition(bucket):
    google, _ = open_storage(
        "gs://lake", {"gs.endpoint": bucket.endpoint, "gs.auth.access-token": SECRET}
    )
    azure, _ = open_storage(
        "abfss://lake@account.dfs.core.windows.net",
        {"azure.endpoint": bucket.endpoint, "azure.account-key": "c2VjcmV0"},
    )
    for storage, header, value in (
        (google, "x-goog-if-generation-match", "0"),
        (azure, "if-none-match", "*"),
    ):
        bucket.requests.clear()
        assert storage.create(f"{storage.scheme}/1", b"first") is True
        assert storage.create(f"{storage.scheme}/1", b"second") is False
        puts = [headers for verb, _, headers in bucket.requests if verb == "PUT"]
        assert [headers.get(header) for headers in puts] == [value] * 4


def break_conditions(bucket, how: str) -> None:
    bucket.honours_conditions = how == "lies"
    bucket.lies_about_conditions = how == "lies"
    if how == "has none":
        bucket.put_faults = [PutFault.NO_SUCH_CALL]
