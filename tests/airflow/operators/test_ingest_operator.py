"""The ingest operator: parameters in, one run of the job, and retries only where they can help."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from airflow.sdk import DAG, task

import lakeformat as lake
from airflow_provider_lake.arguments.declared import LakeArgumentError
from airflow_provider_lake.jobs.prepared_job import SOURCE_VARIABLE, prepare_job
from airflow_provider_lake.operators.ingest import LakeIngestOperator
from tests.airflow.contexts import task_context
from tests.airflow.versions import AirflowFailException


@pytest.fixture
def context():
    return task_context("land")


def land(**more):
    return LakeIngestOperator(task_id="land", table="shop.orders", **more)


def test_it_lands_files_once_for_each_run(tmp_path, warehouse, context):
    (tmp_path / "a.csv").write_text("id\n1\n")
    task = land(source=str(tmp_path / "*.csv"), create=True, ingest_again=True)

    first, again = task.execute(context), task.execute(context)
    context["ti"].run_id = "manual__2"
    other = task.execute(context)

    assert [r["snapshot_id"] for r in (first, again, other)] == [1, 1, 2]
    assert [r["replayed"] for r in (first, again, other)] == [False, True, False]


def test_a_clear_of_a_task_that_replaced_a_partition_keeps_what_came_later(
    tmp_path, warehouse, context
):
    (tmp_path / "a.csv").write_text("dt,id\nmon,1\ntue,2\n")
    land(source=str(tmp_path / "a.csv"), create=True, partition_by=["dt"]).execute(context)
    (tmp_path / "a.csv").write_text("dt,id\nmon,3\n")
    context["ti"].run_id = "manual__2"
    task = land(source=str(tmp_path / "a.csv"), overwrite="partitions")

    first, again = task.execute(context), task.execute(context)

    orders = lake.open_catalog(warehouse).table("shop.orders")
    assert sorted(orders.scan().to_arrow()["id"].to_pylist()) == [2, 3]
    assert (first["snapshot_id"], again["replayed"]) == (2, True)


@pytest.fixture
def expired(tmp_path, warehouse, context):
    """A killed task: its files are landed without a record, and its snapshot has expired."""
    (tmp_path / "a.csv").write_text("id\n1\n")
    task = land(source=str(tmp_path / "*.csv"), create=True)
    task.execute(context)
    orders = lake.open_catalog(warehouse).table("shop.orders")
    orders.write(orders.scan().to_arrow())
    directory = Path(warehouse) / "shop.db" / "orders"
    for record in (directory / "run").glob("run-*"):
        record.unlink()
    (directory / "snapshot" / "snapshot-1").unlink()
    return task, orders


def test_a_retry_after_its_snapshot_has_expired_publishes_nothing(expired, context):
    task, orders = expired
    with pytest.raises(AirflowFailException, match="have expired since its first attempt"):
        task.execute(context)
    assert orders.latest_snapshot().id == 2


def test_a_clear_after_its_snapshot_has_expired_is_not_recognised(expired, context):
    """As documented: Airflow does not keep the time of the first start of a run."""
    task, _ = expired
    context["dag_run"].clear_number = 1
    assert not task.execute(context)["replayed"]


def test_a_request_that_stays_wrong_is_not_retried(tmp_path, warehouse, context):
    (tmp_path / "a.txt").write_text("id\n1\n")

    with pytest.raises(AirflowFailException, match=r"InvalidRequestError: .*a\.txt"):
        land(source=str(tmp_path / "a.txt"), create=True).execute(context)


def test_files_that_may_still_come_are_retried(tmp_path, warehouse, context):
    with pytest.raises(lake.NotFoundError, match="matches no file"):
        land(source=str(tmp_path / "*.csv"), create=True).execute(context)


def test_an_argument_it_does_not_know_is_refused():
    with pytest.raises(TypeError, match="tabel"):
        LakeIngestOperator(task_id="land", table="shop.orders", source="*", tabel="x")


@pytest.mark.parametrize("content", ["é\n1\n", "id\né\n"])
def test_a_file_that_is_not_utf8_is_not_retried(tmp_path, warehouse, context, content):
    (tmp_path / "a.csv").write_text(content, encoding="latin-1")

    with pytest.raises(AirflowFailException, match=r"a\.csv: it is not UTF-8"):
        land(source=str(tmp_path / "a.csv"), create=True).execute(context)


@pytest.fixture
def shop_database(tmp_path):
    """A SQL table in a database without authentication."""
    path = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table orders (id integer)")
        connection.execute("insert into orders values (1), (2)")
    return f"sqlite:///{path}"


def test_a_login_comes_from_a_connection_and_nothing_of_it_is_shown(
    shop_database, warehouse, connect, context, tmp_path
):
    connect("shop_db", conn_type="postgres", login="reader", password="hush-hush")
    task = land(jdbc_url=shop_database, jdbc_table="orders", jdbc_conn_id="shop_db", create=True)

    request = task._request(context)

    assert request.source_options == {"user": "reader", "password": "hush-hush"}
    assert "hush-hush" not in repr({name: getattr(task, name) for name in task.template_fields})
    work = prepare_job("ingest", request, folder=str(tmp_path), name="n")
    assert "hush-hush" not in json.dumps(work.words)
    assert json.loads(work.environment[SOURCE_VARIABLE])["password"] == "hush-hush"
    assert work.words[-2:] == ["--source-options-env", SOURCE_VARIABLE]


SHOWN = pytest.mark.parametrize(
    "shown",
    [
        {"jdbc_url": "postgresql://reader:hush@host/shop"},
        {"jdbc_url": "postgresql://reader:hu/hush@host/shop"},
        {"jdbc_url": "jdbc:mysql://reader:hu/hush@host:3306/shop"},
        {"jdbc_url": "jdbc:postgresql://reader:hu;hush@host/shop"},
        {"jdbc_url": "jdbc:sqlserver://host;password=hush"},
        {"jdbc_url": "jdbc:sqlserver://host; accessToken = hush"},
        {"jdbc_url": "jdbc:postgresql://host/shop?ssl=true&sslpassword=hush"},
        {"jdbc_url": "jdbc:oracle:thin:reader/hush@//host:1521/shop"},
        {"jdbc_url": "postgresql://reader:hu?hush@host/shop"},
        {"jdbc_url": "mssql+pyodbc:///?odbc_connect=SERVER%3Dhost%3BUID%3Dreader%3BPWD%3Dhush"},
        {"jdbc_url": "bigquery://project?credentials_base64=hush"},
        {"jdbc_url": "snowflake://reader@account/shop?private_key_passphrase=hush"},
        {"jdbc_url": "jdbc:mysql://(host=host,user=reader,password=hush)/shop"},
        {"jdbc_url": "jdbc:mysql://address=(host=host)(user=reader)(password=hush)/shop"},
        {"jdbc_url": "jdbc:oracle:oci:reader/hush@shop"},
        *(
            {"jdbc_url": "jdbc:postgresql://host/shop", "source_options": {name: "hush"}}
            for name in ("password", "PWD", "passphrase", "api_key", "accessKey", "Authorization")
        ),
    ],
)


@SHOWN
def test_a_password_in_an_argument_is_refused_where_the_dag_is_parsed(shown):
    with pytest.raises(TypeError, match="would show a password") as refused:
        land(jdbc_table="orders", **shown)

    assert "hush" not in str(refused.value)


@SHOWN
def test_so_is_one_that_mapped_tasks_share(shown):
    with DAG("d", schedule=None), pytest.raises(LakeArgumentError, match="show a password") as told:
        LakeIngestOperator.partial(task_id="land", jdbc_table="orders", **shown)

    assert "hush" not in str(told.value)


@SHOWN
def test_so_is_one_that_a_template_renders_to(shown, warehouse, context):
    task = land(
        jdbc_table="orders", **{"jdbc_url": "jdbc:x://h", **dict.fromkeys(shown, "{{ v }}")}
    )
    for name, value in shown.items():
        setattr(task, name, value)
    with pytest.raises(LakeArgumentError, match="show a password") as told:
        task.execute(context)

    assert "hush" not in str(told.value)


def test_address_and_options_may_be_the_result_of_another_task(warehouse, context):
    @task
    def find():
        """Return the address and the options of a database."""

    with DAG("d", schedule=None):
        first = find()
        more = LakeIngestOperator(
            task_id="more",
            table="shop.orders",
            jdbc_url=first["url"],
            jdbc_table="orders",
            source_options=first["options"],
        )

    assert more.upstream_task_ids == {"find"}
    more.jdbc_url, more.source_options = "jdbc:x://h", {"password": "hush"}
    with pytest.raises(LakeArgumentError, match=r"source_options\['password'\] would show"):
        more.execute(context)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://host:3306/shop?user=a@b",
        "postgresql://reader@host:5432/shop",
        "jdbc:oracle:thin:@//host:1521/shop",
        "sqlite:////data/shop.db",
        "postgresql://host:5432/shop?user=me%40corp",
        "bigquery://project?credentials_path=/keys/a.json",
        "jdbc:snowflake://account/?private_key_file=/keys/a.p8",
        "jdbc:awsathena://;AwsCredentialsProviderClass=com.example.Provider",
        "jdbc:hive2://host:10000/shop;auth=noSasl",
        "jdbc:hive2://host:10000/shop;principal=hive/_HOST@REALM",
        "jdbc:sqlserver://host:1433;databaseName=shop;user=me@corp",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(HOST=host))(SECURITY=(TOKEN_LOCATION=/t)))",
        "jdbc:oracle:oci:@shop",
    ],
)
def test_an_address_without_a_password_is_taken(url):
    assert land(jdbc_url=url, jdbc_table="orders").jdbc_url == url


def test_rows_of_a_sql_table_land_once(shop_database, warehouse, context):
    task = land(jdbc_url=shop_database, jdbc_table="orders", create=True)

    first, again = task.execute(context), task.execute(context)

    assert lake.open_catalog(warehouse).table("shop.orders").scan().count() == 2
    assert (first["replayed"], again["replayed"]) == (False, True)


def test_a_refusal_shows_no_value_of_an_option():
    with pytest.raises(TypeError, match="'source_options' must be a dict") as refused:
        land(jdbc_url="x", jdbc_table="t", source_options={"a": "hush", "b": ["hush"]})

    assert "hush" not in str(refused.value)
