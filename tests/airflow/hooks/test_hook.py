"""The hook: where the warehouse is, and whether it works from here."""

import pyarrow as pa
import pytest
from airflow.secrets.base_secrets import BaseSecretsBackend

import lakeformat as lake
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.spark.master import spark_connection
from tests.airflow.versions import AIRFLOW, AirflowNotFoundException, since
from tests.iceberg_rest_server import rest_server

# Airflow 3.1 refuses such an extra itself, before the hook sees the connection.
NO_OBJECT = (
    r"exists but cannot be read \(ValueError\): set the variable AIRFLOW_CONN_ODD_LAKE"
    if AIRFLOW.release < (3, 2)
    else "an extra that is not a JSON object: write"
)


def test_the_connection_names_the_warehouse(warehouse):
    catalog = LakeHook().get_conn()
    catalog.create_database("shop")

    assert lake.open_catalog(warehouse).list_databases() == ["shop"]


def test_without_a_connection_the_default_is_a_folder_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert LakeHook().get_conn().location == f"file://{tmp_path}/warehouse"


def test_another_connection_has_to_exist():
    with pytest.raises(
        AirflowNotFoundException, match="connection 'no_such_lake' does not exist: create it"
    ):
        LakeHook("no_such_lake").get_conn()


@pytest.mark.parametrize("conn_id", ["lake_default", "other_lake"])
@pytest.mark.parametrize("written", ['{"conn_type": "lake", "password": "hush",}', "lake://[hush"])
def test_a_connection_that_cannot_be_read_is_not_taken_for_absent(monkeypatch, conn_id, written):
    """Rows for another warehouse would go into a folder here, and the task would succeed."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", written)

    with pytest.raises(lake.InvalidRequestError, match="exists but cannot be read") as refused:
        LakeHook(conn_id).get_conn()
    assert "hush" not in str(refused.value)


def test_a_secrets_backend_that_fails_is_not_taken_for_one_that_knows_nothing(monkeypatch):
    class Vault(BaseSecretsBackend):
        def get_connection(self, conn_id, team_name=None):
            raise OSError("sealed")

    backends = "airflow.sdk.execution_time.supervisor.ensure_secrets_backend_loaded"
    monkeypatch.setattr(backends, lambda: [Vault()])

    with pytest.raises(lake.UnavailableError, match="Vault failed with OSError"):
        LakeHook().get_conn()
    with pytest.raises(lake.UnavailableError, match="Vault failed with OSError"):
        spark_connection("spark_default")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"conn_type": "spark", "extra": {"warehouse": "/w"}},
            "has type 'spark': use a connection of type 'lake'",
        ),
        ({"conn_type": "lake", "extra": {}}, "has no warehouse"),
        ({"conn_type": "lake", "extra": {"warehouse": ""}}, "has no warehouse"),
        ({"conn_type": "lake", "extra": {"warehouse": 7}}, "a warehouse that is not a string"),
        (
            {"conn_type": "lake", "extra": {"warehouse": "/w", "lock": "x"}},
            "sets 'lock', which a lake",
        ),
        ({"conn_type": "lake", "extra": "[1]"}, NO_OBJECT),
        ({"conn_type": "lake", "extra": "{"}, NO_OBJECT),
        ({"conn_type": "lake", "extra": '"/w"'}, NO_OBJECT),
        (
            {"conn_type": "lake", "extra": {"warehouse": "/w", "options": ["x"]}},
            "not a JSON object of strings",
        ),
        (
            {"conn_type": "lake", "extra": {"warehouse": "/w", "options": {"a": 1}}},
            "the value of option 'a' is not a string",
        ),
        (
            {"conn_type": "lake", "host": "/h", "extra": {"warehouse": "/w"}},
            "names two warehouses, '/h' as host and '/w' in extra: keep one",
        ),
        (
            {"conn_type": "lake", "login": "me", "extra": {"warehouse": "/w"}},
            "sets 'login', which a lake",
        ),
    ],
)
def test_what_a_connection_cannot_mean_is_refused(connect, fields, words):
    connect("odd_lake", **fields)

    with pytest.raises(lake.InvalidRequestError, match=words):
        LakeHook("odd_lake").get_conn()


def test_a_working_connection_says_what_it_found(warehouse):
    lake.open_catalog(warehouse).create_database("shop")

    works, said = LakeHook().test_connection()

    assert works
    assert said.startswith(f"file://{warehouse} has 1 database")


def test_a_warehouse_that_cannot_be_written_fails_the_test(tmp_path, connect):
    (tmp_path / "file").touch()
    connect("lake_default", conn_type="lake", extra={"warehouse": str(tmp_path / "file" / "x")})

    works, said = LakeHook().test_connection()

    assert not works
    assert str(tmp_path / "file") in said
    assert "set 'warehouse' to a folder" in said
    assert "--" not in said


@pytest.mark.parametrize("warehouse_uri", ["ftp://host/warehouse", "file://host/x", "\0"])
def test_testing_a_connection_never_raises(connect, warehouse_uri):
    connect("lake_default", conn_type="lake", extra={"warehouse": warehouse_uri})

    works, said = LakeHook().test_connection()

    assert not works
    assert "Error: " in said


@pytest.mark.filterwarnings(
    "ignore:ProvidersManager.hooks is deprecated"
)  # Airflow calls it itself
def test_the_button_of_airflow_s_form_tests_the_connection(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")
    extra = f'{{"warehouse": "{tmp_path}"}}'
    form = {"connection_id": "not_saved_yet", "conn_type": "lake", "extra": extra}

    answer = ask("/api/v2/connections/test", role="admin", method="POST", json=form)

    assert answer.json() == {"status": True, "message": f"file://{tmp_path} has 0 databases"}


@since("3.3", "tests of connections in tasks")
def test_a_task_can_test_the_connection(tmp_path):
    from airflow.sdk import Connection

    extra = f'{{"warehouse": "{tmp_path}"}}'
    form = Connection(conn_id="not_saved_yet", conn_type="lake", extra=extra)

    assert form.test_connection() == (True, f"file://{tmp_path} has 0 databases")


def test_the_options_of_a_connection_open_its_catalog_and_secrets_are_masked(
    tmp_path, connect, monkeypatch
):
    masked = []
    monkeypatch.setattr("airflow_provider_lake.hooks.connection.mask_secret", masked.append)
    options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
    connect(
        "lake_default", conn_type="lake", extra={"warehouse": f"{tmp_path}/w", "options": options}
    )
    hook = LakeHook()
    assert "SqlCatalog" in repr(hook.get_conn())
    assert hook.catalog_options == options
    assert masked == [options["uri"]]


def test_a_connection_opens_a_catalog_of_iceberg_tables(tmp_path, connect, monkeypatch):
    masked = []
    monkeypatch.setattr("airflow_provider_lake.hooks.connection.mask_secret", masked.append)
    uri = f"jdbc:sqlite:{tmp_path}/catalog.db"
    more = {"format": "iceberg", "metastore": "sql", "uri": uri}
    connect("lake_default", conn_type="lake", extra={"warehouse": str(tmp_path), **more})
    catalog = lake.open_catalog(str(tmp_path), **more)
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT")])

    hook = LakeHook()

    assert hook.table("shop.orders").format == "iceberg"
    assert hook.get_conn().list_tables("shop") == ["orders"]
    assert masked == [uri]


def test_a_service_of_iceberg_tables_has_no_directory_to_test(connect):
    with rest_server() as server:
        server.databases["shop"] = {}
        more = {"format": "iceberg", "metastore": "rest", "uri": server.uri}
        connect("lake_default", conn_type="lake", extra={"warehouse": "analytics", **more})

        works, said = LakeHook().test_connection()

    assert (works, said) == (True, "analytics has 1 database")


def test_it_gives_tables_their_snapshots_plans_and_health(warehouse):
    catalog = lake.open_catalog(warehouse)
    catalog.create_database("shop")
    orders = catalog.create_table(
        "shop.orders",
        [("id", "BIGINT NOT NULL")],
        primary_key=["id"],
        options={"bucket": "1"},
    )
    hook = LakeHook()
    assert hook.latest_snapshot("shop.orders") is None

    for each in (1, 2):
        orders.write(pa.table({"id": [each]}))

    assert hook.table("shop.orders").location == orders.location
    assert hook.latest_snapshot("shop.orders").id == 2
    assert [snapshot.id for snapshot in hook.snapshots("shop.orders")] == [1, 2]
    assert len(hook.plan_compaction("shop.orders", strategy="full").units) == 1
    assert hook.health("shop.orders", time_travel=False).to_dict()["score"] > 0
