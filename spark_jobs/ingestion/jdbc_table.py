# SPDX-License-Identifier: Apache-2.0
"""Finds the table of a JDBC address with SQLAlchemy, as engine ``python`` does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import lakeformat as lake
from spark_jobs.ingestion.sql_table import SqlTable, find_sql_table

if TYPE_CHECKING:
    from spark_jobs.job_requests.ingest import IngestRequest

__all__ = ["find_jdbc_table"]

_log = logging.getLogger(__name__)

_OF_SPARK = frozenset(
    each.lower()
    for each in (
        "customSchema",
        "driver",
        "fetchsize",
        "hint",
        "lowerBound",
        "numPartitions",
        "partitionColumn",
        "preferTimestampNTZ",
        "pushDownAggregate",
        "pushDownLimit",
        "pushDownOffset",
        "pushDownPredicate",
        "pushDownTableSample",
        "queryTimeout",
        "upperBound",
    )
)
"""Options of Spark's JDBC source in lower case. All other options are taken as options of the JDBC
driver.
"""


def find_jdbc_table(wanted: IngestRequest) -> SqlTable | None:
    """Return the SQL table of a request; None if SQLAlchemy cannot look it up, with the reason in
    the log.

    None is returned if the Python driver is missing or gets no answer, and for a database other
    than SQLite and PostgreSQL. Raises ``NotFoundError`` if the database has no such table.
    """
    try:
        return _reflected(wanted)
    except ModuleNotFoundError as missing:
        reason = (
            f"the Python module {missing.name} is not installed (run pip install "
            "'airflow-provider-lake[jdbc]')"
        )
    except (lake.InvalidRequestError, lake.UnsupportedError):
        reason = (
            "Python looks up columns only in SQLite and PostgreSQL, and only with parameters that "
            "their Python drivers know (see jdbc_url and source_options)"
        )
    except lake.UnavailableError:
        reason = "Python gets no answer from the SQL database"
    _log.info(
        "Python cannot look up the columns of SQL table %r, so Spark looks them up and chooses "
        "their types. The reason: %s",
        wanted.jdbc_table,
        reason,
    )
    return None


def _reflected(wanted: IngestRequest) -> SqlTable:
    import sqlalchemy as sql

    from lakeformat.storage.sql import parse_database_uri

    assert wanted.jdbc_url is not None
    assert wanted.jdbc_table is not None
    options = wanted.source_options or {}
    of_driver = {key: value for key, value in options.items() if key.lower() not in _OF_SPARK}
    address = parse_database_uri(wanted.jdbc_url, of_driver)
    engine = sql.create_engine(address.url, poolclass=sql.NullPool, hide_parameters=True)
    return find_sql_table(engine, wanted.jdbc_table, wanted.mapping)
