# SPDX-License-Identifier: Apache-2.0
"""Reads a connection of type ``lake``, and refuses unknown fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from lakeformat import InvalidRequestError

__all__ = ["CONNECTION_TYPE", "OPTION_FIELDS", "LakeConnection", "read_connection"]

CONNECTION_TYPE = "lake"

OPTION_FIELDS: Mapping[str, str] = {
    "format": "format",
    "metastore": "metastore",
    "uri": "uri",
    "external_roots": "external-roots",
    "s3_endpoint": "s3.endpoint",
    "s3_region": "s3.region",
    "s3_access_key": "s3.access-key",
    "s3_secret_key": "s3.secret-key",
    "s3_session_token": "s3.session.token",
    "gs_key_file": "gs.auth.service.account.json.keyfile",
    "gs_access_token": "gs.auth.access-token",
    "azure_account": "azure.account",
    "azure_account_key": "azure.account-key",
    "azure_sas_token": "azure.sas-token",
    "azure_tenant_id": "azure.tenant-id",
    "azure_client_id": "azure.client-id",
    "azure_client_secret": "azure.client-secret",
}
"""Fields of the connection form, each with its option of the catalog or the storage."""

ENGINES = ("auto", "python", "spark")

# A uri may hold a password, and a header the login of a service.
_SECRET = re.compile(r"(?i)^uri$|^header\.|keyfile|sslkey|account[-_.]key")
_UNUSED_FIELDS = ("port", "login", "password", "schema")
_KNOWN = ("warehouse", "options", "secret_options", "engine", "spark_conn_id", *OPTION_FIELDS)


@dataclass(frozen=True, slots=True)
class LakeConnection:
    """A lake: its location, its options, the engine for tasks with ``engine="auto"``, and the
    connection for Spark.
    """

    warehouse: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    engine: str = "auto"
    spark_conn_id: str | None = None


def read_connection(connection: Connection) -> LakeConnection:
    """Return the lake of a connection; raise ``InvalidRequestError``, which names the field, for an
    unknown field or a wrong value.
    """
    name = f"connection {connection.conn_id!r}"
    if connection.conn_type != CONNECTION_TYPE:
        raise _refusal(f"{name} has type {connection.conn_type!r}: use a connection of type 'lake'")
    given = _fields(connection, name)
    options = _options(given, name)
    said_secret = _object(given.get("secret_options", {})) or {}
    _mask_secrets(options, said_secret)
    warehouse, engine = given.get("warehouse"), given.get("engine", "auto")
    if warehouse is None:
        raise _refusal(f"{name} has no warehouse: set it to a path or URI")
    if not isinstance(warehouse, str):
        raise _refusal(f"{name} has a warehouse that is not a string: write it in quotes")
    if warehouse != warehouse.strip():  # such as a copied line end
        raise _refusal(f"{name} has spaces around its warehouse {warehouse!r}: remove them")
    if engine not in ENGINES:
        raise _refusal(f"{name} has engine {engine!r}: use one of {', '.join(ENGINES)}")
    spark_conn_id = given.get("spark_conn_id")
    if not isinstance(spark_conn_id, str | None):
        raise _refusal(f"{name} has a spark_conn_id that is not a string: write the id in quotes")
    return LakeConnection(warehouse, options, engine, spark_conn_id)


def _mask_secrets(options: Mapping[str, str], said_secret: Mapping[str, Any]) -> None:
    """Hide the values of secret options in logs. If a value is a URL that contains a secret,
    such as a password, hide this secret, too: an error may show it without the URL.
    """
    from lakeformat.storage.shown import carries_secret, secrets_in
    from lakeformat.types.secret_names import names_secret

    for key, value in options.items():
        is_secret = key in said_secret or _SECRET.search(key) or names_secret(key)
        if is_secret or carries_secret(value):
            for secret in (value, *secrets_in(value)):
                mask_secret(secret)


def _fields(connection: Connection, name: str) -> dict[str, Any]:
    """Return the fields of a connection that are set, by their names in the form. Raise
    ``InvalidRequestError`` for an unknown field, or for two different warehouses.
    """
    unused = {field: getattr(connection, field) for field in _UNUSED_FIELDS}
    extra = _extra(connection, name)
    # The form shows the host as the warehouse, above its collapsed sections.
    host = connection.host or extra.get("warehouse")
    if extra.get("warehouse") not in (None, "", host):
        raise _refusal(
            f"{name} names two warehouses, {host!r} as host and {extra['warehouse']!r} in extra: "
            "keep one"
        )
    fields = {**unused, **extra, "warehouse": host}
    given = {key: value for key, value in fields.items() if value not in (None, "", {})}
    if unknown := [key for key in given if key not in _KNOWN]:
        from lakeformat.types.closest import closest  # only for a message

        shown = ", ".join(map(repr, unknown))
        if unknown[0] not in _UNUSED_FIELDS and (near := closest(unknown[0], _KNOWN)):
            raise _refusal(f"{name} sets {shown}, which a lake connection does not have{near}")
        raise _refusal(
            f"{name} sets {shown}, which a lake connection does not have: its fields are "
            f"{', '.join(map(repr, _KNOWN))}"
        )
    return given


def _extra(connection: Connection, name: str) -> dict[str, Any]:
    """Return the JSON object in ``extra``; empty text is an empty object. Raise
    ``InvalidRequestError`` for anything else.
    """
    text = connection.extra or ""
    if not text.strip():
        return {}
    extra = _object(text)
    if extra is None:  # not shown: it may hold a secret
        raise _refusal(
            f'{name} has an extra that is not a JSON object: write {{"warehouse": "/path/or/uri"}}'
        )
    return extra


def _options(given: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the options of the catalog and its storage, collected from all fields of the form.
    Raise ``InvalidRequestError`` for a value that is not a string, or an option with two values.
    """
    found: dict[str, str] = {}
    for key, value in _each_option(given, name):
        if not isinstance(value, str):  # not shown: it may be a secret
            raise _refusal(
                f"{name}: the value of option {key!r} is not a string: write it in quotes"
            )
        if found.get(key, value) != value:
            raise _refusal(f"{name} sets option {key!r} to two different values: keep one")
        found[key] = value
    return found


def _each_option(given: Mapping[str, Any], name: str) -> Iterator[tuple[Any, Any]]:
    for field_name in ("options", "secret_options"):
        options = _object(given.get(field_name, {}))
        if options is None:  # not shown: it may hold a secret
            raise _refusal(
                f"{name} has {field_name} that are not a JSON object of strings: write "
                '{"key": "value"}'
            )
        yield from options.items()
    for field_name, option in OPTION_FIELDS.items():
        if field_name in given:
            yield option, given[field_name]


def _object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def _refusal(reason: str) -> InvalidRequestError:
    from lakeformat import InvalidRequestError

    return InvalidRequestError(reason)
