"""Java's Iceberg in Spark, and the two warehouses that it shares with this library."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake

HERE = Path(__file__).parent
# A Java process keeps the jars of its first session, so it also gets those of later tests.
JARS = ("iceberg-spark-runtime", "sqlite-jdbc", "postgresql")
CATALOG = "org.apache.iceberg.spark.SparkCatalog"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pyspark leaves the sockets over which it collected rows to the garbage collector."""
    ignored = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(ignored)


@pytest.fixture(scope="session")
def spark_with_iceberg(
    java_start: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Path]]:
    """One Spark with the catalogs ``path`` and ``sql``, and the directory of their warehouses."""
    from spark_jobs.runtime.spark_session import start_session

    place = tmp_path_factory.mktemp("iceberg")
    folder = Path(java_start["classpath"].split(os.pathsep)[1]).parent
    jars = [str(jar) for name in JARS for jar in folder.glob(f"{name}*.jar")]
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    conf = {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": extensions,
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.catalog.path": CATALOG,
        "spark.sql.catalog.path.type": "hadoop",
        "spark.sql.catalog.path.warehouse": f"file://{place}/path",
        "spark.sql.catalog.path.cache-enabled": False,
        "spark.sql.catalog.sql": CATALOG,
        "spark.sql.catalog.sql.type": "jdbc",
        "spark.sql.catalog.sql.uri": f"jdbc:sqlite:{place}/catalog.db?busy_timeout=20000",
        "spark.sql.catalog.sql.warehouse": f"file://{place}/sql",
        "spark.sql.catalog.sql.jdbc.schema-version": "V1",
        "spark.sql.catalog.sql.cache-enabled": False,
    }
    session = start_session("tests of Iceberg", master="local[2]", conf=conf)
    yield session, place
    session.stop()


@dataclass(frozen=True, slots=True)
class JavaIceberg:
    """A table as Java's Iceberg has it, and the catalog with which this library opens it."""

    spark: Any
    catalog: lake.Catalog
    kind: str
    name: str

    @property
    def identifier(self) -> str:
        """The name in Spark's SQL."""
        return f"{self.kind}.shop.{self.name}"

    def ours(self) -> Any:
        """The table as this library has it, opened anew."""
        return self.catalog.table(f"shop.{self.name}")

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement, in which ``{table}`` is the table, and return its rows."""
        asked = statement.replace("{table}", self.identifier)
        return [tuple(row) for row in self.spark.sql(asked).collect()]

    def call(self, procedure: str, arguments: str = "") -> list[tuple[Any, ...]]:
        """Call a procedure of Iceberg on the table."""
        given = f"table => 'shop.{self.name}'" + (f", {arguments}" if arguments else "")
        return self.sql(f"CALL {self.kind}.system.{procedure}({given})")

    def rows(self, snapshot: int | None = None) -> list[tuple[Any, ...]]:
        """Return the rows that Java reads, sorted."""
        version = "" if snapshot is None else f" VERSION AS OF {snapshot}"
        return sorted(self.sql(f"SELECT * FROM {{table}}{version}"), key=repr)


@pytest.fixture(params=["path", "sql"])
def java_iceberg(
    request: pytest.FixtureRequest, spark_with_iceberg: tuple[Any, Path]
) -> JavaIceberg:
    """A name for a table of the test's own, in the catalog ``path`` and in ``sql``."""
    session, place = spark_with_iceberg
    kind = request.param
    how = {} if kind == "path" else {"metastore": "sql", "uri": f"sqlite:///{place}/catalog.db"}
    if kind == "sql":
        how["options"] = {"catalog-name": "sql"}
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)
    catalog = lake.open_catalog(f"{place}/{kind}", format="iceberg", **how)
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {kind}.shop")
    return JavaIceberg(session, catalog, kind, name)
