"""Pages about tables in Airflow's web interface; nothing of it is loaded before a request."""

from __future__ import annotations

__all__ = ["PAGES", "TASK_PAGE"]

PAGES = "lake"
"""Where the pages are, below the address of the web interface."""
TASK_PAGE = "lake-snapshots"
"""The tab of a task that shows what it changed."""
