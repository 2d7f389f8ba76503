# SPDX-License-Identifier: Apache-2.0
"""Renders facts as HTML.

The template engine escapes every value. This module builds the links, and quotes the names in them.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from airflow.sdk.log import redact  # type: ignore[attr-defined]
from jinja2 import Environment, PackageLoader, StrictUndefined

from airflow_provider_lake.page.airflow_records import OneTask
from airflow_provider_lake.page.chart import HEIGHT, SLOT, bars
from lakeformat.types.byte_size import size
from lakeformat.types.count_text import counted
from lakeformat.types.duration_text import duration

__all__ = ["HEADERS", "render"]

_PAGES = Environment(
    loader=PackageLoader("airflow_provider_lake.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, root: str, **values: Any) -> str:
    """Return the HTML of a page; ``root`` is the path of the pages on the server."""
    return _PAGES.get_template(template).render(links=_Links(root), style=_STYLE, **values)


class _Links:
    def __init__(self, root: str) -> None:
        self._root = root

    def start(self) -> str:
        return f"{self._root}/"

    def open(self) -> str:
        return f"{self._root}/open"

    def tables(self, connection_id: str) -> str:
        return f"{self._root}/tables/{quote(connection_id, '')}"

    def tables_from(self, connection_id: str, first: str) -> str:
        return f"{self.tables(connection_id)}?{urlencode({'first': first})}"

    def table(self, connection_id: str, name: str, **more: str) -> str:
        asked = urlencode({"name": name, **more})
        return f"{self._root}/table/{quote(connection_id, '')}?{asked}"

    def snapshot(self, connection_id: str, name: str, number: int) -> str:
        asked = urlencode({"name": name, "number": number})
        return f"{self._root}/snapshot/{quote(connection_id, '')}?{asked}"

    def task(self, task: OneTask) -> str:
        parts = (task.dag_id, task.run_id, task.task_id, str(task.map_index))
        return f"{self._root}/tasks/{'/'.join(quote(each, '') for each in parts)}"


def _moment(millis: int | None) -> str:
    if millis is None:
        return "–"
    try:
        return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # out of range for a calendar date
        return f"{millis} ms"


def _ago(millis: int, now_millis: int) -> str:
    return f"{duration(max(now_millis - millis, 0))} ago"


def _age(seconds: float | None) -> str:
    """Return words for the seconds since a commit; ``never`` for None.

    The shortest age is one second, also for a commit that seems to be in the future because the
    clock of its machine is fast.
    """
    return "never" if seconds is None else f"{duration(max(int(seconds * 1000), 1000))} ago"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _signed(value: int) -> str:
    return f"{value:+,}".replace("-", "−") if value else "0"


_PAGES.filters.update(
    age=_age,
    size=size,
    moment=_moment,
    number=_number,
    signed=_signed,
    sentence=_sentence,
    without_secrets=redact,
)
_PAGES.globals.update(
    ago=_ago, bar_height=HEIGHT, bar_slot=SLOT, bars=bars, counted=counted, no_identifier=2**63 - 1
)

_STYLE = _PAGES.get_template("style.css").render()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
        "frame-ancestors 'self'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""HTTP headers of each page: no script runs, nothing is loaded from other sites, and no other site
can show the page in a frame.
"""
