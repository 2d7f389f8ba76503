"""Connections to a database are closed when nothing can use them any more."""

from __future__ import annotations

import gc
import sqlite3

import pytest

from lakeformat.storage.sql.address import parse_database_uri
from lakeformat.storage.sql.database import SqlDatabase


def test_a_database_that_is_dropped_closes_its_connections(tmp_path):
    database = SqlDatabase(parse_database_uri(f"sqlite:///{tmp_path}/catalog.db"))
    database.create()
    with database.reading("look") as connection:
        kept = connection.connection.dbapi_connection
    assert kept.execute("SELECT 1").fetchone() == (1,)

    del database, connection
    gc.collect()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        kept.execute("SELECT 1")
