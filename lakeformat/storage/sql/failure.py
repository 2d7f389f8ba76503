# SPDX-License-Identifier: Apache-2.0
"""Translates errors of a database into ``LakeError``, without secrets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    ProgrammingError,
    SQLAlchemyError,
)

from lakeformat.errors import InvalidRequestError, LakeError, NotFoundError, UnavailableError
from lakeformat.storage.sql.address import DRIVER, DatabaseAddress
from lakeformat.types.closest import closest
from lakeformat.types.sentence import sentence

__all__ = ["is_unique_violation", "no_such_catalog", "translated"]

_EXTRA = "pip install 'airflow-provider-lake[jdbc]'"
# The wording of the drivers, which give no code for a failed connection.
_KNOWN: tuple[tuple[type[LakeError], str, str], ...] = (
    (
        UnavailableError,
        "readonly database|read-only transaction",
        "The database is read-only: let this user write the file and its directory, or"
        " name a server that accepts writes",
    ),
    (
        UnavailableError,
        "unable to open database file",
        "The path must name a file in an existing directory, to which this user can write",
    ),
    (
        UnavailableError,
        "disk is full|no space left",
        "The disk of the database is full: free some space, then retry",
    ),
    (
        InvalidRequestError,
        "file is not a database|disk image is malformed",
        "That file is not a SQLite database: correct the uri, or restore the file from a backup",
    ),
    (
        InvalidRequestError,
        'no such (table|column)|(relation|column) ".*" does not exist|has no column named',
        "A table of the metastore is missing or belongs to another program: restore it, or name"
        " an empty database, in which the tables are created",
    ),
    (
        InvalidRequestError,
        "decode to utf-8",
        "A row of the metastore is not valid UTF-8: correct or delete it",
    ),
    (
        InvalidRequestError,
        'database ".*" does not exist',
        "Create that database, or correct its name in the uri",
    ),
    (
        InvalidRequestError,
        "authentication failed|role .* does not exist|no password supplied|no pg_hba.conf entry",
        "Check the user, the password and the server's access rules",
    ),
    (
        InvalidRequestError,
        "invalid (sslmode|port|integer|dsn|connection option|channel_binding|uri)"
        "|could not parse|invalid value for parameter|unrecognized configuration parameter",
        "Correct that parameter in the uri or in the options that begin with jdbc.",
    ),
    (
        InvalidRequestError,
        "greenlet_spawn",
        "An asynchronous driver cannot be used: remove it from the uri, or name psycopg2",
    ),
    (
        UnavailableError,
        "could not translate host name|name or service not known",
        "Check the host in the uri, and retry",
    ),
)
_UNIQUE_POSTGRESQL = "23505"
_UNIQUE_SQLITE = frozenset({"SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})


@contextmanager
def translated(database: DatabaseAddress, doing: str) -> Iterator[None]:
    """Raise a ``LakeError`` for any failure of the database; ``doing`` names the operation in the
    message.
    """
    try:
        yield
    except (SQLAlchemyError, ImportError) as error:
        # Without its cause: a traceback prints the driver's own error, which may quote a secret.
        raise _failure(database, doing, error) from None


def no_such_catalog(
    database: DatabaseAddress, name: str, others: Collection[str], option: str
) -> NotFoundError:
    """Return the error for a catalog that has no row, in a database that has other catalogs.

    The message lists the other catalogs, and names ``option``, the option that chooses one.
    """
    shown = sorted(others)
    listed = ", ".join(map(repr, shown[:5])) + (", …" if len(shown) > 5 else "")
    return NotFoundError(
        f"{database} has no catalog {name!r}; it has {listed}{closest(name, others) or '.'} To "
        f"choose one, set the option {option} (`lake --catalog-option {option}={shown[0]}`). To "
        f"create the catalog {name!r}, create its first database, for example with "
        "create_database('shop')"
    )


def is_unique_violation(error: IntegrityError) -> bool:
    """Return True if an insert failed because a row with the same key exists; False if it broke
    another rule of the database.
    """
    said = error.orig
    code = getattr(said, "pgcode", None) or getattr(said, "sqlstate", None)
    return code == _UNIQUE_POSTGRESQL or getattr(said, "sqlite_errorname", "") in _UNIQUE_SQLITE


def _failure(database: DatabaseAddress, doing: str, error: Exception) -> LakeError:
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    for secret in database.secrets:
        said = said.replace(secret, "***")
    where = sentence(f"cannot {doing} in the metastore {database}: {' '.join(said.split())}")
    if isinstance(error, NoSuchModuleError | ImportError):
        return InvalidRequestError(f"{where} {_remedy(error)}")
    for kind, words, remedy in _KNOWN:
        if re.search(words, said, re.IGNORECASE):
            return kind(f"{where} {remedy}")
    if isinstance(error, ProgrammingError | DataError | IntegrityError):
        return InvalidRequestError(f"{where} Check the tables and permissions of the database")
    return UnavailableError(f"{where} Retry once the database answers again")


def _remedy(error: Exception) -> str:
    """Return advice about a missing driver: install its package, or use ``DRIVER``, which an extra
    of this project installs.
    """
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if package == DRIVER.partition("+")[2]:
        return f"Install the driver: {_EXTRA}"
    choice = f"write {DRIVER}://… and {_EXTRA}"
    return (
        f"Install the package {package}, or {choice}" if package else f"Check its name, or {choice}"
    )
