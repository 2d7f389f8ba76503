# SPDX-License-Identifier: Apache-2.0
"""The SQL catalog: a SQL database lists the tables, as for Java's JDBC catalog.

Schemas, snapshots and rows are only in the files of the tables. A drop or a rename is first
recorded in the SQL database, so that ``repair`` can finish it after a crash.
"""

from __future__ import annotations

from lakeformat.catalog.sql.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
