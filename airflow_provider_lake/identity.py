"""Who commits for a task: the same name in every try, so that a retry publishes nothing twice."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = [
    "ONLY_COMMIT",
    "FirstTry",
    "RunOfDag",
    "TaskIdentity",
    "commit_user",
    "find_first_try",
    "first_try_millis",
]

_log = logging.getLogger(__name__)

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


class RunOfDag(Protocol):
    """What a DAG run says of when it began."""

    @property
    def start_date(self) -> datetime | None:
        """When it began to run; anew if it is cleared after its end."""

    @property
    def clear_number(self) -> int | None:
        """How often tasks of it were cleared."""


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


def first_try_millis(dag_run: RunOfDag) -> int | None:
    """A moment before the first try of any task of a run; None where Airflow does not keep it.

    A run whose tasks were cleared may have been given another start. What a run is about
    (``logical_date``, ``run_after``) says nothing: a backfill runs years later.
    """
    if dag_run.start_date is None or dag_run.clear_number != 0:
        return None
    return int(dag_run.start_date.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class FirstTry:
    """What is known of the time before any try of a task."""

    millis: int | None
    """A moment of it; None where Airflow does not keep it."""
    head: str | None
    """The identity of the table's newest snapshot then."""


def find_first_try(context: Context, subject: str, head: Callable[[], str | None]) -> FirstTry:
    """When the first try of this task began, and what it found.

    The first try asks for the head of the table and keeps it in the task's state store, which
    outlives retries and clears. Airflow takes it only while no other try has begun: until then
    nothing of this task's can have been published. Without the store, as in a try after one that
    could not keep it, there is the start of the run alone.
    """
    began, store = first_try_millis(context["dag_run"]), context.get("task_state_store")
    if store is None:
        return FirstTry(began, None)
    key = f"lake-first-try:{subject}"
    kept: Any = store.get(key)
    if isinstance(kept, dict):
        return FirstTry(**kept)
    if context["ti"].try_number != 1:
        return FirstTry(began, None)
    now = int(datetime.now(UTC).timestamp() * 1000)
    seen = FirstTry(now if began is None else began, head())
    return seen if _keeps(store, key, seen) else FirstTry(began, None)


def _keeps(store: Any, key: str, seen: FirstTry) -> bool:
    from airflow.sdk.exceptions import AirflowRuntimeError

    try:
        store.set(key, asdict(seen))
    except AirflowRuntimeError as reason:
        _log.warning("what the first try has found could not be kept: %s", reason)
        return False
    return True
