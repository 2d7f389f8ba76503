"""One Spark for the whole session, and requests to ingest files."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

import lakeformat as lake
from spark_jobs.runtime.spark_session import start_session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Pyspark leaves the sockets over which it collected rows to the garbage collector."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(
                pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
            )


@pytest.fixture(scope="session", autouse=True)
def _quick_java(quick_java):
    """Also for the Sparks that tests start in processes of their own."""


@pytest.fixture(scope="session")
def spark(quick_java):
    if importlib.util.find_spec("pyspark.core") is None:
        pytest.skip("needs pyspark: pip install 'airflow-provider-lake[spark]'")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("needs Java 17 to 21 in JAVA_HOME or on the PATH; bin/test installs one")
    conf = {
        "spark.python.daemon.module": "tests.spark.loaded_workers",
        "spark.sql.shuffle.partitions": 4,  # each has a task, which costs more than few rows
        "spark.sql.streaming.pollingDelay": "200ms",  # a stream asks its source so often
    }
    session = start_session("tests", master="local[2,2]", conf=conf)  # two tries for each task
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path):
    return str(tmp_path / "warehouse")


@pytest.fixture
def request_for(tmp_path, warehouse):
    """A request to ingest files of ``tmp_path`` into ``shop.orders``."""

    def build(pattern, **more):
        source = str(tmp_path / pattern)
        return {
            "warehouse": warehouse,
            "table": "shop.orders",
            "source": source,
            "create": True,
            **more,
        }

    return build


@pytest.fixture
def lake_spark(spark, warehouse):
    """The session, with the format ``lake`` and the tables of this test's warehouse."""
    from spark_jobs import register

    return register(spark, warehouse)


@pytest.fixture
def catalog(warehouse):
    made = lake.open_catalog(warehouse)
    made.create_database("shop")
    return made
