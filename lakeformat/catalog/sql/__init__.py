"""The SQL catalog: a database lists what there is, as Java's JDBC catalog does; files say the rest.

Whatever a crash may interrupt is noted in the database before it is begun, so that ``repair``, or
the next call that meets it, can finish it.
"""

from __future__ import annotations

from lakeformat.catalog.sql.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
