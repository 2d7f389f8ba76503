# SPDX-License-Identifier: Apache-2.0
"""The plugin of Airflow: a macro for templates, and pages for the web interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from airflow_provider_lake.compat import AirflowPlugin
from airflow_provider_lake.jobs.identity import commit_user
from airflow_provider_lake.page import PAGES, TASK_PAGE

__all__ = ["LakePages", "LakePlugin"]


class LakePages:
    """The pages of ``page/app.py``, which the first request imports.

    Workers and the DAG processor import plugins as well, but do not need FastAPI.
    """

    async def __call__(
        self,
        scope: Any,
        receive: Callable[..., Awaitable[Any]],
        send: Callable[..., Awaitable[Any]],
    ) -> None:
        """Pass a request to the pages."""
        from airflow_provider_lake.page.app import app

        await app(scope, receive, send)


class LakePlugin(AirflowPlugin):
    """The plugin class that Airflow finds by the entry point ``airflow.plugins``. Its macro is
    ``macros.lake.commit_user``.

    The addresses of the pages are relative, because Airflow may be served below a path.
    """

    name = "lake"
    macros = [commit_user]  # noqa: RUF012 - Airflow's own declarations
    fastapi_apps = [{"app": LakePages(), "url_prefix": f"/{PAGES}", "name": "Lake tables"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Lake tables",
            "href": f"{PAGES}/",
            "destination": "nav",
            "category": "browse",
            "url_route": PAGES,
        },
        {
            "name": "Lake snapshots",
            "href": f"{PAGES}/tasks/{{DAG_ID}}/{{RUN_ID}}/{{TASK_ID}}/{{MAP_INDEX}}",
            "destination": "task_instance",
            "url_route": TASK_PAGE,
        },
    ]
