"""The connection type ``lake``: its form, JSON and URI, and where its secrets never go."""

import json
from pathlib import Path
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from airflow.sdk import Connection

import lakeformat as lake
from airflow_provider_lake.hooks.connection import OPTION_FIELDS, read_connection
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.prepared_job import CATALOG_VARIABLE, prepare_job
from airflow_provider_lake.operators.health import LakeHealthOperator
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from airflow_provider_lake.provider_info import get_provider_info
from tests.airflow.contexts import task_context

ROOT = Path(__file__).resolve().parents[3]
[FORM] = get_provider_info()["connection-types"]
SECRET = "hush-hush-42"


def read(**extra):
    connection = Connection(conn_id="lake", conn_type="lake", extra=json.dumps(extra))
    return read_connection(connection)


def test_every_field_of_the_form_is_read_and_every_other_refused():
    fields = set(FORM["conn-fields"])

    assert fields == {
        "options",
        "secret_options",
        "engine",
        "spark_conn_id",
        *OPTION_FIELDS,
    }
    with pytest.raises(
        lake.InvalidRequestError, match=r"sets 'warehous', .*did you mean 'warehouse'"
    ):
        read(warehous="/w")
    with pytest.raises(lake.InvalidRequestError, match=r"sets .port., .*its fields are"):
        read_connection(Connection(conn_id="lake", conn_type="lake", host="/w", port=1))


def test_what_may_be_secret_is_not_shown_by_the_form():
    hidden = [
        name
        for name, field in FORM["conn-fields"].items()
        if field["schema"].get("format") == "password"
    ]

    assert hidden == [
        "uri",
        "secret_options",
        "s3_secret_key",
        "s3_session_token",
        "gs_access_token",
        "azure_account_key",
        "azure_sas_token",
        "azure_client_secret",
    ]


def test_fields_become_options_of_the_catalog_and_its_storage():
    found = read(
        warehouse="s3://lake/warehouse",
        metastore="jdbc",
        uri="jdbc:sqlite:/c.db",
        external_roots="s3://fast/lake, /data",
        s3_endpoint="https://s3.example.org",
        s3_access_key="ours",
        s3_secret_key=SECRET,
        options={"s3.region": "eu-1"},
        secret_options='{"s3.session.token": "t-t-t"}',
        engine="spark",
        spark_conn_id="spark_eu",
    )

    assert (found.warehouse, found.engine, found.spark_conn_id) == (
        "s3://lake/warehouse",
        "spark",
        "spark_eu",
    )
    assert found.options == {
        "metastore": "jdbc",
        "uri": "jdbc:sqlite:/c.db",
        "external-roots": "s3://fast/lake, /data",
        "s3.endpoint": "https://s3.example.org",
        "s3.access-key": "ours",
        "s3.secret-key": SECRET,
        "s3.region": "eu-1",
        "s3.session.token": "t-t-t",
    }
    assert SECRET not in repr(found)


@pytest.mark.parametrize("host", ["/data/warehouse", "s3://lake/warehouse", "gs://lake/warehouse"])
def test_the_host_is_the_warehouse(host):
    connection = Connection(conn_id="lake", conn_type="lake", host=host)

    assert read_connection(connection).warehouse == host


@pytest.mark.parametrize(("field", "option"), OPTION_FIELDS.items())
def test_each_field_of_a_store_is_an_option_that_the_storage_knows(field, option):
    known = ["uri", "format", "metastore", "external-roots"]
    stores = (ROOT / "docs" / "storage.md").read_text()

    assert read(warehouse="/w", **{field: "x"}).options == {option: "x"}
    assert option in known or f"`{option}`" in stores


def test_empty_fields_of_a_form_say_nothing():
    found = read(warehouse="/w", metastore="", uri=None, options={}, secret_options="", engine="")

    assert (found.options, found.engine) == ({}, "auto")


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"engine": "flink"}, "engine 'flink': use one of auto, python, spark"),
        ({"secret_options": "{"}, "secret_options that are not a JSON object of strings"),
        ({"options": {"a": 1}}, "the value of option 'a' is not a string: write it in quotes"),
        (
            {"options": {"metastore": "jdbc"}, "metastore": "filesystem"},
            "'metastore' to two different values",
        ),
        ({"spark_conn_id": 1}, "spark_conn_id that is not a string"),
        ({"s3_secret_key": 7}, "the value of option .* is not a string: write it in quotes"),
    ],
)
def test_what_a_field_cannot_mean_is_refused(extra, words):
    with pytest.raises(lake.InvalidRequestError, match=words):
        read(warehouse="/w", **extra)


def test_a_uri_carries_the_same_fields(monkeypatch, tmp_path):
    options = json.dumps({"table-default.bucket": "2"})
    query = urlencode({"warehouse": str(tmp_path), "options": options, "engine": "python"})
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_BY_URI", f"lake://?{query}")

    found = LakeHook("lake_by_uri").lake

    assert (found.warehouse, found.options) == (str(tmp_path), {"table-default.bucket": "2"})


def test_a_uri_with_the_extra_whole_works_too(monkeypatch, tmp_path):
    extra = quote(json.dumps({"warehouse": str(tmp_path), "options": {"case-sensitive": "false"}}))
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_BY_URI", f"lake://?__extra__={extra}")

    assert LakeHook("lake_by_uri").lake.options == {"case-sensitive": "false"}


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("format", ["iceberg", None], "delta"),
        ("metastore", ["rest", None], "mysql"),
        ("engine", ["python", None], "java"),
        ("options", [{"a": "b"}, None], "a=b"),
    ],
)
def test_a_field_of_the_form_takes_what_it_describes_or_nothing(field, right, wrong):
    schema = FORM["conn-fields"][field]["schema"]
    is_valid = jsonschema.Draft202012Validator(schema).is_valid

    assert [is_valid(value) for value in (*right, wrong)] == [True, True, False]


@pytest.fixture
def with_secret(tmp_path, connect):
    """A connection with an option that is a secret, although a table on disk does not use it."""
    connect(
        "lake_default",
        conn_type="lake",
        extra={"warehouse": str(tmp_path / "w"), "s3_secret_key": SECRET, "s3_access_key": "ours"},
    )
    (tmp_path / "a.csv").write_text("id\n1\n")


def test_no_argument_and_no_file_of_a_driver_holds_a_secret(with_secret, tmp_path):
    task = LakeHealthOperator(task_id="work", table="shop.orders")
    request = task._request(task_context())
    assert request.catalog_options["s3.secret-key"] == SECRET

    work = prepare_job("health", request, folder=str(tmp_path), name="n")
    assert SECRET not in json.dumps(work.words)
    assert json.loads(work.environment[CATALOG_VARIABLE])["s3.secret-key"] == SECRET
    assert work.words[-2:] == ["--catalog-options-env", CATALOG_VARIABLE]
    assert SECRET not in repr(work)


@pytest.mark.parametrize(
    ("extra", "shown"),
    [
        ({"secret_options": '{"s3.session.token": "odd-name-1"}'}, "odd-name-1"),
        ({"secret_options": '{"jdbc.user": "who-2"}'}, "who-2"),
        ({"options": {"gs.auth.service.account.json.keyfile": "{key-8}"}}, "{key-8}"),
        ({"uri": "postgresql://u:part%403@host/db"}, "part%403"),
        ({"uri": "postgresql://u:part%404@host/db"}, "part@4"),
        ({"uri": "postgresql://u:front@back-5@host/db"}, "back-5"),
        ({"uri": "postgresql://u:front-6:b@host/db"}, "front-6"),
        ({"uri": "postgresql://u:front/back-7@host/db"}, "front/back-7"),
        ({"options": {"header.X-Key": "shown-10"}}, "shown-10"),
        ({"options": {"oauth2-server-uri": "http://u:shown-11@host/x"}}, "shown-11"),
        ({"options": {"jdbc.uri-like": "open-5"}}, None),
        ({"options": {"oauth2-server-uri": "http://host/x"}}, None),
    ],
)
def test_logs_hide_what_is_secret_whole_and_in_part(monkeypatch, extra, shown):
    masked = []
    monkeypatch.setattr("airflow_provider_lake.hooks.connection.mask_secret", masked.append)
    said = json.dumps({"warehouse": "/w", **extra})

    read_connection(Connection(conn_id="c", conn_type="lake", extra=said))

    assert masked == [] if shown is None else shown in masked


def test_nothing_rendered_pushed_or_returned_holds_a_secret(with_secret, tmp_path, caplog):
    task = LakeIngestOperator(
        task_id="land", table="shop.orders", source=str(tmp_path / "a.csv"), create=True
    )
    context = task_context()
    with caplog.at_level("DEBUG"):
        try:
            result = task.execute(context)
        except Exception as reason:  # noqa: BLE001 - whatever is said, is said without the secret
            result = str(reason)

    rendered = {name: repr(getattr(task, name)) for name in task.template_fields}
    assert SECRET not in json.dumps([rendered, result, context["ti"].xcoms], default=str)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("warehouse", [" ", "s3://lake/warehouse\n", " /w"])
def test_a_warehouse_with_blanks_around_it_is_no_other_place(warehouse):
    with pytest.raises(lake.InvalidRequestError, match="has spaces around its warehouse"):
        read(warehouse=warehouse)
