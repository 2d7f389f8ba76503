# SPDX-License-Identifier: Apache-2.0
"""The SQL catalog: a database lists the tables, as Java's JDBC catalog does; files hold the rest.

Each change of several steps is first noted in the database. After a crash ``repair``, or the next
call that finds the note, finishes the change.
"""

from __future__ import annotations

from lakeformat.catalog.sql.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
