# SPDX-License-Identifier: Apache-2.0
"""The options of a connection for catalogs of Iceberg tables in which tables are published.

They have the names of Paimon's table options: ``metadata.iceberg.rest.`` and the options of a REST
catalog, ``metadata.iceberg.sql.`` and those of a SQL database, and ``metadata.iceberg.`` and
those of a Hive metastore.
"""

from __future__ import annotations

from lakeformat.catalog.iceberg.options import HIVE, REST, SQL, client_options
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.commit import PUBLISHED_PREFIX
from lakeformat.types.closest import closest

CONF_DIR = "hive-conf-dir"
"""The directory of a hive-site.xml, which names the metastore."""
__all__ = ["CONF_DIR", "check_published", "client_prefix", "is_of_client"]

_GROUPS = {REST: "rest.", SQL: "sql.", HIVE: ""}
_FREE = {REST: ("header.",), SQL: ("jdbc.",), HIVE: ()}
"""The beginning of keys that a client passes on."""


def client_prefix(metastore: str) -> str:
    """Return the beginning of the options for the client of a metastore."""
    return f"{PUBLISHED_PREFIX}{_GROUPS[metastore]}"


def is_of_client(metastore: str, key: str) -> bool:
    """Return True if the client of a metastore reads a key without its prefix."""
    names = ("uri", CONF_DIR) if metastore == HIVE else ("uri",)
    return key in names or key in client_options(metastore) or key.startswith(_FREE[metastore])


def check_published(key: str) -> None:
    """Refuse an option that no client reads."""
    for metastore in _GROUPS:
        before = client_prefix(metastore)
        if key.startswith(before) and is_of_client(metastore, key.removeprefix(before)):
            return
    known = [
        client_prefix(metastore) + each
        for metastore in _GROUPS
        for each in ("uri", *sorted(client_options(metastore)))
    ]
    raise InvalidRequestError(
        f"option {key!r} is not one of a connection: options of a table belong to the table"
        f"{closest(key, known)}"
    )
