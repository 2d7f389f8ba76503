# SPDX-License-Identifier: Apache-2.0
"""The options of a connection for the Iceberg catalogs in which Paimon tables are published.

Their keys are ``metadata.iceberg.rest.<key>`` for a REST catalog, ``metadata.iceberg.sql.<key>``
for a SQL database, and ``metadata.iceberg.<key>`` for a Hive metastore.
"""

from __future__ import annotations

from lakeformat.catalog.iceberg.options import HIVE, REST, SQL, client_options
from lakeformat.errors import InvalidRequestError
from lakeformat.paimon.options.commit import PUBLISHED_PREFIX
from lakeformat.types.closest import closest
from lakeformat.types.sentence import sentence

CONF_DIR = "hive-conf-dir"
"""The key of the directory with a hive-site.xml, which has the address of the metastore."""
__all__ = ["CONF_DIR", "check_published", "client_prefix", "is_of_client"]

_GROUPS = {REST: "rest.", SQL: "sql.", HIVE: ""}
_FREE = {REST: ("header.",), SQL: ("jdbc.",), HIVE: ()}
"""The prefixes of further keys that each client accepts."""


def client_prefix(metastore: str) -> str:
    """Return the prefix of the options of a metastore's client, such as
    ``metadata.iceberg.rest.``.
    """
    return f"{PUBLISHED_PREFIX}{_GROUPS[metastore]}"


def is_of_client(metastore: str, key: str) -> bool:
    """Return True if the client of ``metastore`` has the option ``key``.

    ``key`` is given without the prefix that ``client_prefix`` returns.
    """
    names = ("uri", CONF_DIR) if metastore == HIVE else ("uri",)
    return key in names or key in client_options(metastore) or key.startswith(_FREE[metastore])


def check_published(key: str) -> None:
    """Raise ``InvalidRequestError`` for a key ``metadata.iceberg.*`` that is not an option of the
    client of any Iceberg catalog.
    """
    for metastore in _GROUPS:
        before = client_prefix(metastore)
        if key.startswith(before) and is_of_client(metastore, key.removeprefix(before)):
            return
    known = [
        client_prefix(metastore) + each
        for metastore in _GROUPS
        for each in ("uri", *sorted(client_options(metastore)))
    ]
    near = sentence(f"the options of the catalog or connection{closest(key, known)}")
    raise InvalidRequestError(
        f"option {key!r} is unknown for catalogs in which tables are published: leave it out of "
        f"{near} Options of a table, such as metadata.iceberg.storage, are set with alter_table "
        "and lake.set_option"
    )
