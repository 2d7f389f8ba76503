# SPDX-License-Identifier: Apache-2.0
"""Error pages: what happened, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_lake.compat import AirflowNotFoundException, has_teams
from airflow_provider_lake.page.bounded import AT_ONCE, PATIENCE_SECONDS, BusyError, SlowError

__all__ = ["Trouble", "of_access", "trouble_of"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """The text of an error page. In ``happened``, the template masks the secrets that Airflow
    knows.
    """

    status: int
    title: str
    happened: str
    next_step: str


_OF_ACCESS = {
    401: (
        "You are not signed in",
        "sign in to Airflow in this browser, then open the page again",
    ),
    403: (
        "You may not see this page",
        "for a table you need the right to read its connection, for a task the right to see "
        "the task and its XComs: ask the administrator of Airflow for this right",
    ),
    404: ("This page does not exist", "start at the list of tables: Browse, then Lake tables"),
}


def trouble_of(error: Exception) -> Trouble:
    """Return the error page for an error. An unexpected error may contain secrets, so only the log
    has its message.
    """
    from lakeformat import LakeError

    if isinstance(error, SlowError):
        return Trouble(
            504,
            "The table's storage is slow",
            f"the metadata was not read within {PATIENCE_SECONDS:g} seconds",
            "try again later, or use LakeHealthOperator or `lake health`, which have no time limit",
        )
    if isinstance(error, BusyError):
        return Trouble(
            503,
            "The server is busy",
            f"{AT_ONCE} other pages are reading tables, and this is the limit; or no thread can be "
            "started",
            "try again in a minute; if the error remains, check that the storages answer",
        )
    if isinstance(error, AirflowNotFoundException):
        return Trouble(
            404,
            "This connection does not exist",
            str(error),
            "check its id under Admin, Connections"
            + (
                "; pages open a connection of a team only if the connection is in that list"
                * has_teams()
            ),
        )
    if isinstance(error, LakeError):
        return _of_lake(error)
    return Trouble(
        500,
        "An unexpected error",
        f"the page failed with {type(error).__name__}",
        "read the log of Airflow's API server; this may be a defect of airflow-provider-lake",
    )


def _of_lake(error: Exception) -> Trouble:
    """Return the error page for a ``LakeError``, with the message of the error."""
    from lakeformat import (
        CorruptTableError,
        InvalidRequestError,
        NotFoundError,
        SnapshotExpiredError,
        UnavailableError,
        UnsupportedError,
    )

    answers: tuple[tuple[type[Exception], int, str, str], ...] = (
        (SnapshotExpiredError, 409, "The snapshot has expired", "load the page again"),
        (
            NotFoundError,
            404,
            "Not found",
            "check the name; the table may have been dropped or renamed",
        ),
        (
            UnsupportedError,
            400,
            "This cannot be shown",
            "no page can show this: follow the advice in the error message",
        ),
        (
            InvalidRequestError,
            400,
            "This cannot be shown",
            "check the table's name and the fields of the connection",
        ),
        (
            UnavailableError,
            503,
            "A storage or service does not answer",
            "try again later; for a storage, the button Test of the connection shows if it answers",
        ),
        (
            CorruptTableError,
            500,
            "The table is damaged",
            "stop all writers of the table, and check the file that the error names",
        ),
    )
    for kind, status, title, next_step in answers:
        if isinstance(error, kind):
            return Trouble(status, title, str(error), next_step)
    return Trouble(500, "The table cannot be read", str(error), "try again")


def of_access(status: int, detail: str) -> Trouble:
    """Return the error page for a request that Airflow or FastAPI refuses with the HTTP status
    ``status`` and the message ``detail``.
    """
    title, next_step = _OF_ACCESS.get(
        status, ("The request is wrong", "check the address of the page")
    )
    return Trouble(status, title, detail, next_step)
