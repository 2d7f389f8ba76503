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
from lakeformat.sql.address import DatabaseAddress

__all__ = ["is_unique_violation", "translated"]

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
        return InvalidRequestError(f"{where}. Install the driver that the uri names")
    if isinstance(error, ProgrammingError | DataError | IntegrityError):
        return InvalidRequestError(f"{where}. Check the tables and permissions of the database")
    return UnavailableError(f"{where}. Retry once the database answers again")
