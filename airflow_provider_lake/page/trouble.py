"""What a page says when it cannot show what was asked for: what happened, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_lake.page.bounded import AT_ONCE, PATIENCE_SECONDS, BusyError, SlowError
from airflow_provider_lake.page.team_lake import has_teams

__all__ = ["Trouble", "of_access", "trouble_of"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """An answer that is no page; what happened may repeat a secret."""

    status: int
    title: str
    happened: str
    next_step: str


_OF_ACCESS = {
    401: (
        "Nobody is signed in",
        "sign in to Airflow in this browser, then open the page again",
    ),
    403: (
        "This page is not for you",
        "a table needs the right to read its connection, a task that to see its DAG: ask whoever "
        "looks after Airflow's roles",
    ),
    404: ("There is no such page", "begin at the list of tables: Browse, then Lake tables"),
}


def trouble_of(error: Exception) -> Trouble:
    """An error as people read it; what is not ours may hold anything, and is left to the log."""
    from lakeformat import LakeError

    if isinstance(error, SlowError):
        return Trouble(
            504,
            "The table's storage is slow",
            f"metadata was not read within {PATIENCE_SECONDS:g} seconds",
            "try again later; LakeHealthOperator and the command lake health wait as long as it "
            "takes",
        )
    if isinstance(error, BusyError):
        return Trouble(
            503,
            "Others are looking at tables",
            f"{AT_ONCE} pages are waiting for a storage already, as many as this server lets wait",
            "try again in a minute; if it stays like this, a storage does not answer at all",
        )
    if isinstance(error, AirflowNotFoundException):
        return Trouble(
            404,
            "There is no such connection",
            str(error),
            "check its id under Admin, Connections"
            + ("; a table's page opens a connection of a team only from there" * has_teams()),
        )
    if isinstance(error, LakeError):
        return _of_lake(error)
    return Trouble(
        500,
        "Something broke",
        f"looking at it ended in {type(error).__name__}",
        "the log of Airflow's API server says more; this may be a defect of airflow-provider-lake",
    )


def _of_lake(error: Exception) -> Trouble:
    """The library's own words, which say what was attempted, on what, and what to try."""
    from lakeformat import (
        CorruptTableError,
        InvalidRequestError,
        NotFoundError,
        SnapshotExpiredError,
        UnavailableError,
    )

    answers: tuple[tuple[type[Exception], int, str, str], ...] = (
        (SnapshotExpiredError, 409, "It has expired meanwhile", "load the page again"),
        (
            NotFoundError,
            404,
            "It is not there",
            "check the name; tables may have been dropped or renamed",
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
            "The storage does not answer",
            "try again later; the button Test of the connection asks the same storage",
        ),
        (
            CorruptTableError,
            500,
            "The table is damaged",
            "stop whatever writes it, and look at the file that is named",
        ),
    )
    for kind, status, title, next_step in answers:
        if isinstance(error, kind):
            return Trouble(status, title, str(error), next_step)
    return Trouble(500, "It cannot be read", str(error), "try again")


def of_access(status: int, detail: str) -> Trouble:
    """What Airflow itself has refused."""
    title, next_step = _OF_ACCESS.get(
        status, ("The request is wrong", "check the address of the page")
    )
    return Trouble(status, title, detail, next_step)
