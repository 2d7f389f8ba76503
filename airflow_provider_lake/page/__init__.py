# SPDX-License-Identifier: Apache-2.0
"""Pages in Airflow's web interface that show tables; the first request imports their modules."""

from __future__ import annotations

__all__ = ["PAGES", "TASK_PAGE"]

PAGES = "lake"
"""The path of the pages below the address of the web interface."""
TASK_PAGE = "lake-snapshots"
"""The path of a task's tab *Lake snapshots*, which shows the snapshots that the task has
published.
"""
