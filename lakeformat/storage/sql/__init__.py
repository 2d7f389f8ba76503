# SPDX-License-Identifier: Apache-2.0
"""A metastore in a SQL database: the tables of Java's JDBC catalog, and its lock."""

from __future__ import annotations

from lakeformat.storage.sql.address import DatabaseAddress, parse_database_uri
from lakeformat.storage.sql.database import SqlDatabase
from lakeformat.storage.sql.lock import LockSettings, SqlLock

__all__ = ["DatabaseAddress", "LockSettings", "SqlDatabase", "SqlLock", "parse_database_uri"]
