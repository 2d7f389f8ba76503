# SPDX-License-Identifier: Apache-2.0
"""Pages about tables in Airflow's web interface; nothing else is imported before the first
request.
"""

from __future__ import annotations

__all__ = ["PAGES", "TASK_PAGE"]

PAGES = "lake"
"""The path of the pages below the address of the web interface."""
TASK_PAGE = "lake-snapshots"
"""The path of a task's tab *Lake snapshots*, which shows the snapshots that the task has
published.
"""
