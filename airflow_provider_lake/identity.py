"""Who commits for a task: the same name in every try, so that a retry publishes nothing twice."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Protocol

__all__ = ["ONLY_COMMIT", "TaskIdentity", "commit_user"]

ONLY_COMMIT = 1
"""The identifier of a task's commit, where the task makes one."""

_READABLE = 80
_DIGEST_BYTES = 16


class TaskIdentity(Protocol):
    """What tells a task instance from every other one; a try number does not."""

    @property
    def dag_id(self) -> str:
        """The DAG."""

    @property
    def run_id(self) -> str:
        """The run of the DAG."""

    @property
    def task_id(self) -> str:
        """The task in the DAG."""

    @property
    def map_index(self) -> int | None:
        """Which of the mapped instances of the task; -1 or None for a task that is not mapped."""


def commit_user(ti: TaskIdentity, table: str) -> str:
    """The commit user of a task instance on a table, safe in file names.

    A retry, a cleared task and a process that outlived its task all have the same one; another
    run, task, map index or table has another.
    """
    index = -1 if ti.map_index is None else ti.map_index
    parts = json.dumps([ti.dag_id, ti.run_id, ti.task_id, index, table])
    digest = hashlib.blake2b(parts.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{ti.dag_id}.{ti.task_id}")[:_READABLE]
    return f"airflow.{readable}.{digest}"
