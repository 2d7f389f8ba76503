# SPDX-License-Identifier: Apache-2.0
"""The routes of the pages. Each route checks access and changes nothing; reads of tables have a
time limit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from airflow_provider_lake.compat import has_teams
from airflow_provider_lake.page.access import (
    User,
    lake_connections,
    may_read_connection,
    may_see_task,
    visible_tasks,
)
from airflow_provider_lake.page.airflow_records import OneTask, tasks_of_users
from airflow_provider_lake.page.bounded import SlowError, beside_the_loop
from airflow_provider_lake.page.overview import Overview
from airflow_provider_lake.page.snapshot_facts import look_at_snapshot
from airflow_provider_lake.page.table_facts import look_at_table
from airflow_provider_lake.page.task import changes_of_task
from airflow_provider_lake.page.task_result import check_lines, report_facts, table_lines
from airflow_provider_lake.page.trouble import Trouble, of_access, trouble_of

__all__ = ["app"]

_log = logging.getLogger(__name__)
_DEFAULT_CONNECTION = "lake_default"

T = TypeVar("T")

# No API description is served: the pages are for people.
app = FastAPI(title="Lake tables", openapi_url=None, docs_url=None, redoc_url=None)


class _TroubleError(Exception):
    """An error while a page reads tables; ``where`` names what the page is about."""

    def __init__(self, error: Exception, where: str) -> None:
        self.error = error
        self.where = where


@app.get("/")
async def start(request: Request, user: User) -> Response:
    """Show the lakes that the user may read."""
    connections = await run_in_threadpool(lake_connections, user)
    return _page(
        request,
        "start.html",
        connections=connections,
        default_connection=_DEFAULT_CONNECTION,
        has_teams=has_teams(),
    )


@app.get("/open")
async def open_by_name(
    request: Request, user: User, connection: str = _DEFAULT_CONNECTION, name: str = ""
) -> Response:
    """Redirect to the page of the named table or, without a table name, to the list of tables. The
    form on the page of ``start`` is sent to this route.
    """
    root, quoted = _root(request), quote(connection.strip() or _DEFAULT_CONNECTION, "")
    asked = f"table/{quoted}?{urlencode({'name': name.strip()})}" if name.strip() else None
    return RedirectResponse(f"{root}/{asked or f'tables/{quoted}'}", status_code=303)


@app.get("/tables/{connection_id:path}", dependencies=may_read_connection)
async def tables(request: Request, connection_id: str, first: str = "") -> Response:
    """Show the tables of a lake with their health; ``first`` is the first table whose health is
    read.
    """
    found = Overview()
    try:
        await _asked(lambda: found.fill(connection_id, first), f"connection {connection_id!r}")
    except _TroubleError as trouble:
        if not (isinstance(trouble.error, SlowError) and found.health):
            raise  # otherwise the page shows the tables that were read in time
    return _page(request, "tables.html", connection_id=connection_id, found=found)


@app.get("/table/{connection_id:path}", dependencies=may_read_connection)
async def table(
    request: Request, user: User, connection_id: str, name: str = "", history: bool = False
) -> Response:
    """Show the health of a table, its newest snapshots, columns and options. With ``history``, also
    count the files of older snapshots.
    """
    where = f"table {name!r} of connection {connection_id!r}"
    facts = await _asked(lambda: look_at_table(connection_id, name, history=history), where)
    users = [each.commit_user for each in facts.recent if each.commit_user is not None]
    tasks = await _tasks_of(user, name, users)
    return _page(
        request, facts.template, connection_id=connection_id, name=name, facts=facts, tasks=tasks
    )


@app.get("/snapshot/{connection_id:path}", dependencies=may_read_connection)
async def snapshot(
    request: Request,
    user: User,
    connection_id: str,
    number: Annotated[int, Query(ge=1)],
    name: str = "",
) -> Response:
    """Show the files that one commit added and deleted."""
    where = f"snapshot {number} of table {name!r} of connection {connection_id!r}"
    facts = await _asked(lambda: look_at_snapshot(connection_id, name, number), where)
    tasks = await _tasks_of(user, name, [facts.change.snapshot.commit_user])
    return _page(
        request, "snapshot.html", connection_id=connection_id, name=name, facts=facts, tasks=tasks
    )


@app.get("/tasks/{dag_id}/{run_id}/{task_id}/{map_index}", dependencies=may_see_task)
async def task(
    request: Request, dag_id: str, run_id: str, task_id: str, map_index: str
) -> Response:
    """Show the result of a task, and the snapshots that it has published.

    Airflow's interface passes ``{MAP_INDEX}`` as text for a task that is not mapped.
    """
    number = int(map_index) if map_index.isdecimal() and map_index.isascii() else -1
    one = OneTask(dag_id, run_id, task_id, number)
    where = f"task {task_id!r} of run {run_id!r} of DAG {dag_id!r}"
    found = await _asked(lambda: changes_of_task(one), where)
    return _page(
        request,
        "task.html",
        found=found,
        report=report_facts(found.result),
        lines=table_lines(found.result),
        checks=check_lines(found.result),
    )


async def _tasks_of(user: User, name: str, commit_users: list[str]) -> dict[str, OneTask]:
    """Return the tasks with these ``commit_users`` that ``user`` may see, by commit user."""

    def look() -> dict[str, OneTask]:
        return visible_tasks(user, tasks_of_users({*commit_users}, name))

    return await run_in_threadpool(look)


async def _asked(work: Callable[[], T], where: str) -> T:
    try:
        return await beside_the_loop(work)
    except Exception as error:  # The boundary of the application: every error becomes a page.
        raise _TroubleError(error, where) from error


@app.exception_handler(_TroubleError)
async def _show_trouble(request: Request, error: _TroubleError) -> Response:
    trouble = trouble_of(error.error)
    if trouble.status == 500:
        _log.error(
            "the page of %s could not be shown: %s", error.where, error.error, exc_info=error.error
        )
    return _trouble_page(request, trouble, error.where)


@app.exception_handler(HTTPException)
async def _show_refusal(request: Request, error: HTTPException) -> Response:
    return _trouble_page(request, of_access(error.status_code, str(error.detail)), "")


@app.exception_handler(RequestValidationError)
async def _show_wrong_request(request: Request, error: RequestValidationError) -> Response:
    problems = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return _trouble_page(request, of_access(422, problems), "")


def _trouble_page(request: Request, trouble: Trouble, where: str) -> Response:
    return _page(request, "trouble.html", status=trouble.status, trouble=trouble, where=where)


def _page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    # Imported here because it loads the library, which Airflow does not need at start.
    from airflow_provider_lake.page.rendering import HEADERS, render

    return HTMLResponse(render(template, _root(request), **values), status, headers=HEADERS)


def _root(request: Request) -> str:
    """Return the path of the pages, with the server's own path before it."""
    return str(request.scope.get("root_path", "")).rstrip("/")
