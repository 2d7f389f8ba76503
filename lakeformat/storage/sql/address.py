# SPDX-License-Identifier: Apache-2.0
"""Parses the ``uri`` of a metastore, in SQLAlchemy's or Java's form."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from lakeformat.errors import InvalidRequestError, UnsupportedError
from lakeformat.storage.shown import holds_key_material

__all__ = ["DatabaseAddress", "parse_database_uri"]

POSTGRESQL, SQLITE = "postgresql", "sqlite"
DRIVER = f"{POSTGRESQL}+psycopg2"
"""The driver that the extra ``jdbc`` of this project installs."""
CONNECT_TIMEOUT_SECONDS = "10"
BUSY_SECONDS = 30.0
_BUSY_TIMEOUT = "busy_timeout"
"""An option of Java's SQLite driver, in milliseconds."""

# Parameters of Java's PostgreSQL driver, with their names in libpq.
_FROM_JAVA = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "password": "password",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslpassword": "sslpassword",
    "sslrootcert": "sslrootcert",
    "user": "user",
}
_KEY_FILES = ("sslkey", "sslcert", "sslrootcert")
_JAVA_POSTGRESQL = re.compile(
    r"postgresql:(?://(?P<host>\[[^]]+\]|[^/?:,]*)(?::(?P<port>\d+))?/)?(?P<name>[^/?]*)"
    r"(?:\?(?P<query>.*))?"
)
_ELSEWHERE = "Supported are sqlite and postgresql, as in postgresql+psycopg2://user@host/db"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """The address of a database, with its user. ``str`` and ``repr`` omit user, password and
    parameters.
    """

    url: URL = field(repr=False)
    backend: str
    name: str
    """The name of the database in messages."""
    secrets: tuple[str, ...] = field(repr=False)
    """Texts that are removed from every message of a driver."""
    busy_seconds: float = BUSY_SECONDS
    """SQLite only: the longest wait in seconds for another program's transaction."""

    def __str__(self) -> str:
        return self.name


def parse_database_uri(uri: str, properties: Mapping[str, str] | None = None) -> DatabaseAddress:
    """Parse a SQLAlchemy URL, or Java's ``jdbc:sqlite:`` and ``jdbc:postgresql:``.

    ``properties`` are the catalog's options that start with ``jdbc.``, without that prefix; they
    override parameters of the URI. An invalid URI or parameter raises ``InvalidRequestError``;
    another kind of database raises ``UnsupportedError``.
    """
    _require_text("the uri of the metastore", uri)
    for key, value in (properties or {}).items():
        _require_text(f"option jdbc.{key}", value)
    if not uri.strip():
        raise InvalidRequestError(
            "the jdbc metastore needs uri=…, such as postgresql+psycopg2://user@host/database"
        )
    url = _java_url(uri[len("jdbc:") :]) if uri.startswith("jdbc:") else _url(uri)
    backend = url.get_backend_name()
    if backend == SQLITE:
        return _sqlite(url, properties or {})
    if backend == POSTGRESQL:
        return _postgresql(url, properties or {})
    raise UnsupportedError(f"a {backend} database cannot hold a metastore. {_ELSEWHERE}")


def _require_text(what: str, text: str) -> None:
    """Raise ``InvalidRequestError`` if the text has a null character or half of a surrogate pair.

    The message names the setting as ``what``. It does not show the text, because it may be a
    password.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"{what} contains half of a surrogate pair, which is not valid text: type it again"
        ) from None
    if "\0" in text:
        raise InvalidRequestError(f"{what} contains a null character: remove it")


def _url(uri: str) -> URL:
    try:
        return make_url(uri)
    except (ArgumentError, ValueError):
        pass  # the reason quotes the text, which may hold a password
    raise InvalidRequestError(f"the uri of the metastore is not a database address. {_ELSEWHERE}")


def _java_url(rest: str) -> URL:
    kind = rest.partition(":")[0]
    if kind == SQLITE:
        path, _, query = rest.partition(":")[2].partition("?")
        return URL.create(SQLITE, database=path, query=_parameters(query))
    found = _JAVA_POSTGRESQL.fullmatch(rest)
    if found is not None:
        return _java_postgresql(found)
    if kind == POSTGRESQL:
        raise InvalidRequestError(
            "the uri of the metastore is not a jdbc:postgresql address of one host: write "
            "jdbc:postgresql://host:5432/database"
        )
    raise UnsupportedError(f"a jdbc:{kind} database cannot hold a metastore. {_ELSEWHERE}")


def _java_postgresql(found: re.Match[str]) -> URL:
    query = _translated(_parameters(found["query"] or ""), "the uri's ")
    return URL.create(
        POSTGRESQL,
        host=(found["host"] or "localhost").strip("[]"),
        port=int(found["port"]) if found["port"] else None,
        database=unquote(found["name"]) or None,
        query=query,
    )


def _parameters(query: str) -> dict[str, str]:
    given = (part.partition("=") for part in query.split("&") if part)
    return {key: unquote(value) for key, _, value in given}


def _translated(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the parameters of Java's driver under the names that libpq has for them.

    Raise ``InvalidRequestError`` for an unknown parameter. The message shows ``prefix`` before the
    name of the parameter.
    """
    query: dict[str, str] = {}
    for key, value in properties.items():
        if key == "currentSchema":
            query["options"] = f"-csearch_path={value}"
        elif key == "ssl":
            if value.strip().lower() != "false":
                query["sslmode"] = "verify-full"
        elif key in _FROM_JAVA:
            query[_FROM_JAVA[key]] = value
        else:
            known = ", ".join(sorted([*_FROM_JAVA, "currentSchema", "ssl"]))
            raise InvalidRequestError(
                f"{prefix}{key} is not supported for a metastore: remove it. Supported are {known}"
            )
    return query


def _sqlite(url: URL, properties: Mapping[str, str]) -> DatabaseAddress:
    said = {**url.query, **properties}
    for key in said:
        if key != _BUSY_TIMEOUT:
            raise InvalidRequestError(
                f"parameter {key!r} is not supported for a metastore in SQLite: remove it; "
                f"the only parameter is {_BUSY_TIMEOUT} (milliseconds)"
            )
    path = url.database or ""
    if not path or path == ":memory:" or path.startswith("file:"):
        raise InvalidRequestError(
            "a metastore in SQLite must be a file, so that every process can open it: "
            "write sqlite:////absolute/path.db or jdbc:sqlite:/absolute/path.db"
        )
    expanded = os.path.expanduser(path)
    if path.startswith("~") and expanded == path:
        raise InvalidRequestError(
            f"{path} names no home directory of this machine: write the full path of the "
            f"metastore's file, or ./{path} for a file whose name starts with a tilde"
        )
    path = os.path.abspath(expanded)
    seconds = _seconds(said[_BUSY_TIMEOUT]) if _BUSY_TIMEOUT in said else BUSY_SECONDS
    plain = url.set(database=path, query={})
    return DatabaseAddress(plain, SQLITE, f"sqlite:{path}", (), seconds)


def _seconds(milliseconds: object) -> float:
    text = str(milliseconds).strip()
    if not re.fullmatch(r"\d{1,9}", text):
        raise InvalidRequestError(
            f"{_BUSY_TIMEOUT} of the metastore must be a whole number of milliseconds, got {text!r}"
        )
    return int(text) / 1000


def _postgresql(url: URL, properties: Mapping[str, str]) -> DatabaseAddress:
    query = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **url.query}
    query.update(_translated(properties, "option jdbc."))
    for key, value in query.items():
        if key in _KEY_FILES and any(map(holds_key_material, _all(value))):
            raise InvalidRequestError(
                f"{key} of the metastore must be the path of a file, but is the key or certificate "
                f"itself: write it to a file that only this user can read, and give its path"
            )
        if not isinstance(value, str) and key in ("user", "password", "sslpassword"):
            raise InvalidRequestError(
                f"the uri of the metastore names {key} twice: keep one of them"
            )
    user, password = query.pop("user", url.username), query.pop("password", url.password)
    # The driver of a bare name depends on the version of SQLAlchemy.
    driver = DRIVER if url.drivername == POSTGRESQL else url.drivername
    full = url.set(drivername=driver, username=_one(user), password=_one(password), query=query)
    # An unescaped @ in a password makes its rest a part of the host, so the error does not show it.
    host = (full.host or _one(query.get("host")) or "localhost").rpartition("@")[2]
    port = f":{full.port}" if full.port else ""
    if ";" in (full.database or ""):
        raise InvalidRequestError(
            "the uri of the metastore has a semicolon in the name of its database: parameters "
            "follow a question mark, and a password belongs in the option jdbc.password"
        )
    secrets = (full.password, _one(query.get("sslpassword")))
    return DatabaseAddress(
        full,
        POSTGRESQL,
        f"postgresql://{host}{port}/{full.database or ''}",
        tuple(str(secret) for secret in secrets if secret),
    )


def _all(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)


def _one(value: object) -> str | None:
    if isinstance(value, tuple):
        return str(value[0])
    return None if value is None else str(value)
