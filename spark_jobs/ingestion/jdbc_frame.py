# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a table in a SQL database, with Spark over JDBC."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import lakeformat as lake
from lakeformat.files.foreign.column_mapping import ColumnMapping
from lakeformat.tables.arguments import Overwritten
from lakeformat.types.arrow_types import to_arrow_type, type_of_column
from spark_jobs.frames.spark_write import Order, write_rows
from spark_jobs.ingestion.jdbc_table import find_jdbc_table
from spark_jobs.ingestion.schema_change import changes_for_types
from spark_jobs.ingestion.sql_table import SqlTable, no_table, require_table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.job_requests.ingest import IngestRequest
    from spark_jobs.runtime.spark_session import Sessions

__all__ = ["JdbcFrame"]

_CUSTOM_TYPES = "customschema"
# The messages of Derby, PostgreSQL, MySQL, Oracle and SQL Server.
_NO_TABLE = re.compile(
    r"42X05|Table/View '.*' does not exist|relation \".*\" does not exist|42P01|42S02"
    r"|Table '.*' doesn't exist|ORA-00942|Invalid object name"
)
_NO_DRIVER = re.compile(r"No suitable driver|ClassNotFoundException|NoClassDefFoundError")
_BAD_VALUE = re.compile(r"PSQLException: Bad value for type")
_OF_DRIVER = re.compile(
    r"(?<![\w.$])(?!org\.apache\.spark\.)(?:[\w.$]*SQL\w*|[\w.$]*\.jdbc\.[\w.$]*)Exception\b"
)
"""A pattern for the class names of exceptions of JDBC and its drivers, in the error text of a Spark
job.
"""


class JdbcFrame:
    """All rows of a SQL table. With the option ``partitionColumn`` and its related options, several
    tasks read them.

    Raises ``NotFoundError`` for a missing table. If SQLAlchemy can look up tables in this database,
    the error is raised before Spark starts.
    """

    def __init__(self, started: Sessions, wanted: IngestRequest) -> None:
        options = dict(wanted.source_options or {})
        self._has_custom_types = any(key.lower() == _CUSTOM_TYPES for key in options)
        self._on_change = wanted.on_schema_change
        self._asked = str(wanted.jdbc_table)
        self._source = find_jdbc_table(wanted)
        self._frame = _mapped(_loaded(started, wanted, options, self._source), wanted.mapping)

    def new_columns(self) -> Any:
        """Return the columns of a new table, if possible with the types of engine ``python``.

        They have Spark's types if SQLAlchemy cannot look up the SQL table, or if the options of
        the source declare types.
        """
        from pyspark.sql.pandas.types import to_arrow_schema

        if self._source is not None and not self._has_custom_types:
            return self._source.new_columns()
        return to_arrow_schema(self._frame.schema)

    def changes_for(self, table: lake.Table) -> list[lake.SchemaChange]:
        """Return the schema changes that the table needs before it can take the rows. Raise
        ``InvalidRequestError`` for a new column that the table cannot get.
        """
        if self._source is not None and not self._has_custom_types:
            return changes_for_types(table, self._source.types_for(table), self._on_change)
        types = {field.name: type_of_column(field.name, field.type) for field in self.new_columns()}
        return changes_for_types(table, types, self._on_change)

    def written(
        self, table: lake.Table, overwrite: Overwritten | None, order: Order | None
    ) -> list[lake.CommitMessage]:
        """Write the rows in tasks; return the messages to commit. Raise ``InvalidRequestError`` for
        columns or numbers that the table cannot take, and ``UnavailableError`` if the database
        stops answering.
        """
        if self._source is not None:
            self._source.require_columns_of(table)
            self._require_exact_numbers(self._source)
        try:
            return write_rows(self._frame, table, overwrite=overwrite, order=order)
        except Exception as reason:
            if isinstance(reason, lake.LakeError) or not _OF_DRIVER.search(str(reason)):
                raise
            refused = _failed_read(self._asked, reason)
        raise refused

    def _require_exact_numbers(self, source: SqlTable) -> None:
        """Raise ``InvalidRequestError`` for a column of numbers that Spark would round without an
        error, unless ``customSchema`` in the source options sets the types.
        """
        if source.unbounded_numbers and not self._has_custom_types:
            column = source.unbounded_numbers[0]
            raise lake.InvalidRequestError(
                f"column {column!r} is a number without a declared precision, or with more than "
                "38 digits, which Spark would round: use engine 'python', or set 'customSchema' in "
                f"source_options to the type to round to, such as '{column} DECIMAL(38, 18)'"
            )


def _loaded(
    started: Sessions, wanted: IngestRequest, options: dict[str, str], source: SqlTable | None
) -> DataFrame:
    assert wanted.jdbc_table is not None
    if source is None:
        require_table_name(wanted.jdbc_table)
        name = wanted.jdbc_table
    else:
        name = source.quoted
        # A timestamp without a zone keeps none in a new table; Spark's default would add one.
        options = {"preferTimestampNTZ": "true", **_without_case(options, "preferTimestampNTZ")}
    reader = started().read.format("jdbc").options(**options)
    try:
        return reader.options(url=wanted.jdbc_url, dbtable=name).load()
    except Exception as reason:  # noqa: BLE001 - drivers have no common base of exceptions
        refused = _refusal(wanted.jdbc_table, reason)
    raise refused


def _mapped(frame: DataFrame, mapping: ColumnMapping) -> DataFrame:
    """Return ``frame`` with the column names of the table and with the casts in ``mapping``. Raise
    ``InvalidRequestError`` for casts if Spark's ANSI mode is off.
    """
    if not mapping.sources and not mapping.casts:
        return frame
    from pyspark.sql.pandas.types import from_arrow_type as to_spark_type

    names = mapping.names(frame.columns)
    if mapping.casts and frame.sparkSession.conf.get("spark.sql.ansi.enabled") != "true":
        raise lake.InvalidRequestError(
            "key 'casts' needs Spark's setting spark.sql.ansi.enabled=true: otherwise Spark writes "
            "NULL for a value that cannot be cast"
        )
    columns = [frame["`" + each.replace("`", "``") + "`"] for each in frame.columns]
    for number, name in enumerate(names):
        if name in mapping.casts:
            columns[number] = columns[number].cast(
                to_spark_type(to_arrow_type(mapping.casts[name]))
            )
    return frame.select([each.alias(name) for each, name in zip(columns, names, strict=True)])


def _refusal(name: str, reason: Exception) -> lake.LakeError:
    """Return the error for a table that Spark cannot read, without the driver's message, which may
    contain a password.
    """
    message = str(reason)
    if _NO_TABLE.search(message):
        return no_table(name)
    if _NO_DRIVER.search(message):
        return lake.InvalidRequestError(
            f"Spark cannot read {name!r}: it has no JDBC driver for the address. Add the driver's "
            "jar to spark.jars, and its class to source_options, such as "
            '{"driver": "org.postgresql.Driver"}'
        )
    return _unanswered(name, reason)


def _failed_read(name: str, reason: Exception) -> lake.LakeError:
    if _BAD_VALUE.search(str(reason)):
        return lake.InvalidRequestError(
            f"Spark cannot read {name!r}: a value does not fit the type that its column has in "
            "Spark, such as NaN in a NUMERIC. Correct the value in the SQL database, or read a "
            "view that replaces it"
        )
    return _unanswered(name, reason)


def _unanswered(name: str, reason: Exception) -> lake.UnavailableError:
    found = _OF_DRIVER.search(str(reason))
    if found is None:
        return lake.UnavailableError(
            f"Spark cannot read {name!r} ({type(reason).__name__}): the SQL database does not "
            "answer, or Spark refuses a value of source_options or the type of a column. Check "
            "these, then retry"
        )
    kind = found[0].rpartition(".")[2]
    return lake.UnavailableError(
        f"Spark cannot read {name!r}: the SQL database does not answer, or refuses the query "
        f"({kind}). Check the address, the login and its permissions, the network, and the log of "
        "the database, then retry"
    )


def _without_case(options: dict[str, str], known: str) -> dict[str, str]:
    return {known if key.lower() == known.lower() else key: each for key, each in options.items()}
