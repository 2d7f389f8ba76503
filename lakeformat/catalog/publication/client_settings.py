# SPDX-License-Identifier: Apache-2.0
"""Merges the options of a table and of its connection for the client of an Iceberg catalog.

The table names the catalog, and the connection gives the login. All readers of the table can read
its schemas, so no credential may be in them. Every program that writes the table can change its
options, so credentials are sent only to the address that the connection names.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeformat.catalog.iceberg.options import (
    CATALOG_NAME,
    HIVE,
    REST,
    SQL,
    WAREHOUSE,
    IcebergOptions,
)
from lakeformat.catalog.publication.connection_options import client_prefix, is_of_client
from lakeformat.catalog.publication.hive_site import with_address
from lakeformat.errors import UnsupportedError
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.options.commit import PUBLISHED_PREFIX
from lakeformat.publish.targets.wanted import HIVE_CATALOG, REST_CATALOG, SQL_CATALOG
from lakeformat.storage.shown import without_credentials
from lakeformat.tables.credential_options import names_credential

__all__ = ["client_settings"]

_METASTORES = {REST_CATALOG: REST, SQL_CATALOG: SQL, HIVE_CATALOG: HIVE}
_URI = "uri"
_CLIENT_CLASS = "metadata.iceberg.hive-client-class"


def client_settings(options: TableOptions, kind: str, given: Mapping[str, str]) -> IcebergOptions:
    """Return the options of the client for a kind of catalog, from the connection and the table.

    ``given`` are the options of the connection. For a SQL catalog, the table's options give only
    the name of the catalog. For a REST catalog or a Hive metastore, the table's options are used if
    ``given`` has no options for this kind. If ``given`` has some, the table's options give at most
    ``warehouse``.

    ``UnsupportedError`` is raised for a credential in the table's options, and for a missing
    address. It is also raised if ``given`` has options for this kind, but not the address that the
    table names.
    """
    metastore = _METASTORES[kind]
    _require_no_secret(options.to_dict())
    ours = with_address(_below(metastore, given))
    theirs = {} if metastore == SQL else with_address(_below(metastore, options.to_dict()))
    if metastore == HIVE:
        _require_hive(options.to_dict())
    _require_same_address(client_prefix(metastore), theirs, ours)
    if ours:
        theirs = {key: value for key, value in theirs.items() if key == WAREHOUSE}
    merged = {**theirs, **ours, "metastore": metastore}
    if not merged.get(_URI):
        where = f"{'' if metastore == SQL else 'the table, '}the catalog or the connection"
        raise UnsupportedError(
            f"the table is published in a {metastore.upper()} catalog, whose address is missing: "
            f"give the option '{client_prefix(metastore)}{_URI}' to {where}"
        )
    if metastore == SQL:
        merged[CATALOG_NAME] = options.iceberg_sql_catalog
    return IcebergOptions.of(merged)


def _require_hive(options: Mapping[str, str]) -> None:
    named = options.get(_CLIENT_CLASS, "").strip()
    if named and not named.endswith("HiveMetaStoreClient"):
        raise UnsupportedError(
            f"the option {_CLIENT_CLASS!r} of the table is {named!r}, but this library reaches "
            "only Hive metastores: publish with the engine that set the option, or remove the "
            "option"
        )


def _below(metastore: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the client, without their prefix. Options that only Java reads are left
    out.
    """
    before = client_prefix(metastore)
    found = {
        key.removeprefix(before): value for key, value in options.items() if key.startswith(before)
    }
    return {key: value for key, value in found.items() if is_of_client(metastore, key)}


def _require_same_address(before: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    if not ours or _URI not in theirs:
        return
    if _URI not in ours:
        raise UnsupportedError(
            f"the catalog or connection has options that begin with {before!r}, but not "
            f"{before + _URI!r}, the address of the Iceberg catalog. Only the table names an "
            "address. Any program that writes the table can change this address, so no credentials "
            f"are sent to it: give {before + _URI!r} to the catalog or connection, too"
        )
    if ours[_URI].rstrip("/") != theirs[_URI].rstrip("/"):
        raise UnsupportedError(
            f"the option {before + _URI!r} of the table is {theirs[_URI]!r}, and the catalog or "
            "connection names another address, to which its credentials belong: correct one of the "
            "addresses"
        )


def _require_no_secret(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedError`` for a credential in the table's options, which all readers can
    see.
    """
    for key, value in options.items():
        if not key.startswith(PUBLISHED_PREFIX) or value.strip().lower() in ("", "true", "false"):
            continue
        is_header = ".header." in key
        is_address = key.endswith(_URI) and without_credentials(value) != value
        if is_header or is_address or names_credential(key):
            raise UnsupportedError(
                f"the option {key!r} of the table has a credential, which every reader of its "
                f"schema finds. Remove it with alter_table and lake.remove_option({key!r}), "
                "get another credential, and give it to the catalog or connection"
            )
