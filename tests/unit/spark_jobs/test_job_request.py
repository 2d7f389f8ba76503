"""A request is exact, or it is refused by name."""

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import lakeformat as lake
from spark_jobs.job_requests.expire_snapshots import ExpireSnapshotsRequest
from spark_jobs.job_requests.ingest import IngestRequest
from spark_jobs.job_requests.request import read_request

WHOLE = {"warehouse": "w", "table": "shop.orders", "source": "*.csv"}


def test_what_is_not_given_has_a_default():
    wanted = read_request(IngestRequest, WHOLE)

    assert (wanted.engine, wanted.format, wanted.create) == ("python", None, False)
    assert wanted.commit_id() is None


def test_a_request_that_is_made_directly_is_checked_too():
    with pytest.raises(lake.InvalidRequestError, match="'files_per_batch' must be a whole number"):
        IngestRequest(**WHOLE, checkpoint="c", files_per_batch=0)
    with pytest.raises(lake.InvalidRequestError, match="key 'create' must be true or false"):
        IngestRequest(**WHOLE, create="no")


def test_values_of_pythons_own_types_become_text():
    wanted = IngestRequest(
        warehouse=Path("wh"),
        table="shop.orders",
        source=Path("in", "a.csv"),
        create=True,
        table_options={"bucket": 1, "deletion-vectors.enabled": True},
    )

    assert (wanted.warehouse, wanted.source) == ("wh", str(Path("in", "a.csv")))
    assert wanted.table_options == {"bucket": "1", "deletion-vectors.enabled": "true"}
    assert read_request(IngestRequest, vars(wanted)) == wanted


@pytest.mark.parametrize(
    ("age", "text"),
    [(timedelta(days=7), "7 d"), (timedelta(hours=1.5), "5400 s"), ("1 week", "1 week")],
)
def test_an_age_may_be_a_timedelta_or_weeks(age, text):
    subject = {"warehouse": "wh", "table": "shop.orders"}

    assert read_request(ExpireSnapshotsRequest, {**subject, "older_than": age}).older_than == text


def test_a_commit_pair_is_an_identity():
    wanted = read_request(IngestRequest, {**WHOLE, "commit_user": "run", "commit_identifier": 0})

    assert wanted.commit_id() == lake.CommitId("run", 0)
    assert wanted.commit_id().first_try_millis is None


def test_an_identity_may_say_when_its_first_try_began():
    pair = {"commit_user": "run", "commit_identifier": 0}
    began = {"commit_first_try_millis": 1_700_000_000_000}
    wanted = read_request(IngestRequest, {**WHOLE, **pair, **began})

    assert wanted.commit_id().first_try_millis == 1_700_000_000_000


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (date(2024, 1, 31), "2024-01-31"),
        (datetime(2024, 1, 31, 10), "2024-01-31T10:00:00+00:00"),
        (
            datetime(2024, 1, 31, 10, tzinfo=timezone(timedelta(hours=2))),
            "2024-01-31T08:00:00+00:00",
        ),
    ],
)
def test_a_moment_may_be_a_date_or_a_time(given, text):
    asked = {"warehouse": "w", "table": "shop.orders", "older_than": given}

    assert read_request(ExpireSnapshotsRequest, asked).older_than == text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('{"source_options": "hush"}', "a request must be a JSON object, got a str"),
        ({"source_options": ["hush"]}, "got a value that is not shown"),
        ({"catalog_options": "hush"}, "got a value that is not shown"),
        (
            {"table_options": {"fs.s3a.secret.key": "hush"}},
            "got a dict with 'fs.s3a.secret.key'",
        ),
        ({"table_options": {"fs.s3a.secret.key": ["hush"]}}, "got a dict with 'fs.s3a.secret"),
        ({"table_options": {}, "create": {"fs": "hush"}}, "got a dict with 'fs'"),
        ({"table_options": '{"fs.s3a.secret.key": "hush"}'}, "got a str"),
        ({"table_options": [("fs.s3a.secret.key", "hush")]}, "got a list"),
        ({"jdbc_url": ["jdbc:x://user:hush@host/shop"]}, "got a list"),
        ({"jdbc_url": b"jdbc:x://user:hush@host/shop"}, "got bytes"),
    ],
)
def test_a_refusal_shows_nothing_that_may_be_secret(given, words):
    asked = given if isinstance(given, str) else {**WHOLE, **given}
    with pytest.raises(lake.InvalidRequestError) as refused:
        read_request(IngestRequest, asked)

    assert words in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tabel": "x"}, "unknown key 'tabel': did you mean 'table'?"),
        ({"zzz": 1}, "unknown key 'zzz': the keys are warehouse, table, commit_user"),
        ({"table": None}, "key 'table' must be a non-empty string, got None"),
        ({"source": " "}, "key 'source' must be a non-empty string, got ' '"),
        ({"create": "yes"}, "key 'create' must be true or false, got 'yes'"),
        ({"engine": "flink"}, "key 'engine' must be 'python' or 'spark', got 'flink'"),
        ({"format": ["csv"]}, "or 'canal-json' or 'maxwell-json', got ['csv']"),
        (
            {"commit_user": "u", "commit_identifier": True},
            "key 'commit_identifier' must be a whole number, got True",
        ),
        ({"commit_user": "u"}, "together, or neither"),
        (
            {"commit_first_try_millis": 1_700_000_000_000},
            "needs keys 'commit_user' and 'commit_identifier'",
        ),
        (
            {"commit_user": "u", "commit_identifier": 1, "commit_first_try_millis": "today"},
            "key 'commit_first_try_millis' must be a whole number, got 'today'",
        ),
        (
            {"commit_user": "u", "commit_identifier": 1, "commit_first_try_millis": 1_700_000_000},
            "in epoch milliseconds, such as 1767225600000, got 1700000000",
        ),
        ({"commit_user": "u", "commit_identifier": -1}, "must be an integer from 0"),
    ],
)
def test_a_wrong_key_or_value_is_named(change, words):
    with pytest.raises(lake.InvalidRequestError) as caught:
        read_request(IngestRequest, {**WHOLE, **change})

    assert words in str(caught.value)


def test_everything_wrong_is_said_at_once():
    with pytest.raises(lake.InvalidRequestError) as caught:
        read_request(IngestRequest, {"warehouse": 1, "tabel": "x"})

    assert str(caught.value).count(";") == 2


@pytest.mark.parametrize("given", [[], "text", None])
def test_what_is_no_object_is_refused(given):
    with pytest.raises(lake.InvalidRequestError, match="a request must be a JSON object"):
        read_request(IngestRequest, given)


def test_options_of_the_catalog_are_texts_and_never_shown():
    wanted = read_request(IngestRequest, {**WHOLE, "catalog_options": {"jdbc.password": "s3cret"}})
    assert wanted.catalog_options == {"jdbc.password": "s3cret"}
    assert "s3cret" not in repr(wanted)
    for wrong in ({"jdbc.password": ["s3cret"]}, "s3cret"):
        with pytest.raises(
            lake.InvalidRequestError, match="must be an object of strings"
        ) as refused:
            read_request(IngestRequest, {**WHOLE, "catalog_options": wrong})
        assert "s3cret" not in str(refused.value)
