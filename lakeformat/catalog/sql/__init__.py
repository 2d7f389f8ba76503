# SPDX-License-Identifier: Apache-2.0
"""The SQL catalog: a SQL database lists the tables, as for Java's JDBC catalog.

Schemas, snapshots and rows are only in the files of the tables. A change of several steps is first
recorded in the database. After a crash ``repair``, or the next call that finds the record, finishes
the change.
"""

from __future__ import annotations

from lakeformat.catalog.sql.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
