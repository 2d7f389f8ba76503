"""What a database says when it refuses, translated once and without a secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    ProgrammingError,
    SQLAlchemyError,
)

from lakeformat.errors import InvalidRequestError, LakeError, UnavailableError
from lakeformat.sql.address import DRIVER, DatabaseAddress

__all__ = ["is_unique_violation", "translated"]

_EXTRA = "pip install 'airflow-provider-lake[jdbc]'"
_UNIQUE_POSTGRESQL = "23505"
_UNIQUE_SQLITE = frozenset({"SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})


@contextmanager
def translated(database: DatabaseAddress, doing: str) -> Iterator[None]:
    """Raise the library's error for any failure of the database, saying what was tried."""
    try:
        yield
    except (SQLAlchemyError, ImportError) as error:
        # Without its cause: the driver's own error, which a traceback prints, may quote a secret.
        raise _failure(database, doing, error) from None


def is_unique_violation(error: IntegrityError) -> bool:
    """Whether a row with this key exists, and not another rule was broken."""
    said = error.orig
    code = getattr(said, "pgcode", None) or getattr(said, "sqlstate", None)
    return code == _UNIQUE_POSTGRESQL or getattr(said, "sqlite_errorname", "") in _UNIQUE_SQLITE


def _failure(database: DatabaseAddress, doing: str, error: Exception) -> LakeError:
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    for secret in database.secrets:
        said = said.replace(secret, "***")
    where = f"cannot {doing} in the metastore {database}: {' '.join(said.split()).rstrip('.')}"
    if isinstance(error, NoSuchModuleError | ImportError):
        return InvalidRequestError(f"{where}. {_remedy(error)}")
    if isinstance(error, ProgrammingError | DataError | IntegrityError):
        return InvalidRequestError(f"{where}. Check the tables and permissions of the database")
    return UnavailableError(f"{where}. Retry once the database answers again")


def _remedy(error: Exception) -> str:
    """What to install: the project's extra brings one driver, another one is the user's choice."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if package == DRIVER.partition("+")[2]:
        return f"Install the driver: {_EXTRA}"
    choice = f"write {DRIVER}://… and {_EXTRA}"
    return (
        f"Install the package {package}, or {choice}" if package else f"Check its name, or {choice}"
    )
