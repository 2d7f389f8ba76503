# SPDX-License-Identifier: Apache-2.0
"""The commit user of a task: the same in every attempt, so that a retry publishes nothing twice."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
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
    "consumer_name",
    "earliest_millis",
    "find_first_try",
    "first_try_millis",
    "now_millis",
    "possible_names",
    "run_name",
    "task_name",
    "without_suffix",
]

_log = logging.getLogger(__name__)

ONLY_COMMIT = 1
"""The commit identifier of tasks that make one commit."""

_READABLE = 80
_DIGEST_BYTES = 16
_USER = re.compile(rf"(airflow\.(.+)\.[0-9a-f]{{{2 * _DIGEST_BYTES}}})(\..*)?")


class TaskIdentity(Protocol):
    """The ids that identify a task instance; its attempts have the same ids."""

    @property
    def dag_id(self) -> str:
        """The id of the DAG."""

    @property
    def run_id(self) -> str:
        """The id of the DAG run."""

    @property
    def task_id(self) -> str:
        """The id of the task in the DAG."""

    @property
    def map_index(self) -> int | None:
        """The index of a mapped instance; -1 or None for a task that is not mapped."""


class RunOfDag(Protocol):
    """The members of a DAG run that show when it began."""

    @property
    def start_date(self) -> datetime | None:
        """The start of the run, or None. Airflow resets it if the run is cleared after its end."""

    @property
    def clear_number(self) -> int | None:
        """The number of times that the run was cleared; None if unknown."""


def commit_user(ti: TaskIdentity, table: str) -> str:
    """Return the commit user of a task instance on a table, as text that a file name may contain.

    The commit user is the same for a retry, a cleared task, and a process that outlived its task.
    Another run, task, map index or table has another commit user.
    """
    index = -1 if ti.map_index is None else ti.map_index
    return _name_of(ti, [ti.dag_id, ti.run_id, ti.task_id, index, table])


def run_name(ti: TaskIdentity, table: str) -> str:
    """Return a name for a task on a table in one run, the same for all map indexes. For a task that
    is not mapped, the name is the commit user.
    """
    return _name_of(ti, [ti.dag_id, ti.run_id, ti.task_id, -1, table])


def task_name(ti: TaskIdentity, table: str) -> str:
    """Return a name for a task on a table: the same in every run and for all map indexes, but
    different for another task or table.
    """
    return _name_of(ti, [ti.dag_id, ti.task_id, table])


def consumer_name(dag_id: str) -> str:
    """Return the name of a DAG's consumer, ``airflow.<dag_id>``. If that is too long for a file
    name, it is shortened and ends with a hash of the DAG id.
    """
    from lakeformat.tables.file_name_part import LONGEST_BYTES

    name = f"airflow.{dag_id}"
    fits = len(name.encode(errors="replace")) <= LONGEST_BYTES
    return name if fits else _hashed(dag_id, [dag_id])


def _name_of(ti: TaskIdentity, parts: Sequence[object]) -> str:
    return _hashed(f"{ti.dag_id}.{ti.task_id}", parts)


def _hashed(text: str, parts: Sequence[object]) -> str:
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=_DIGEST_BYTES).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:_READABLE]
    return f"airflow.{readable}.{digest}"


def possible_names(user: str) -> Iterator[tuple[str, str]]:
    """Yield each pair of DAG id and task id that a commit user may stand for; several are possible,
    because ids may contain dots.

    The commit user of another program yields none. The true pair is missing if its ids were
    shortened, or had characters replaced, in the commit user.
    """
    found = _USER.fullmatch(user)
    parts = [] if found is None else found[2].split(".")
    for count in range(1, len(parts)):
        yield ".".join(parts[:count]), ".".join(parts[count:])


def without_suffix(user: str) -> str:
    """Return the commit user of a task without the suffix that a compaction adds; any other user is
    returned unchanged.
    """
    found = _USER.fullmatch(user)
    return user if found is None else found[1]


def first_try_millis(dag_run: RunOfDag) -> int | None:
    """Return the start of a run, a time before the first attempt of any of its tasks, in epoch
    milliseconds. Return None if the run has no start, or if it was cleared, because a cleared run
    may have a new start.

    ``logical_date`` and ``run_after`` cannot replace the start: in a backfill they are years
    earlier, so that a retry would fail because of snapshots that have expired since.
    """
    if dag_run.start_date is None or dag_run.clear_number != 0:
        return None
    return int(dag_run.start_date.timestamp() * 1000)


def earliest_millis(dag_run: Any) -> int | None:
    """Return a time before the first attempt of any task of a run, in epoch milliseconds; None if
    no such time is known.

    This is the start of the run. If ``first_try_millis`` does not know the start, this is
    ``run_after``, which may be years before the start.
    """
    began, run_after = first_try_millis(dag_run), getattr(dag_run, "run_after", None)
    if began is not None or run_after is None:
        return began
    return int(run_after.timestamp() * 1000)


def now_millis() -> int:
    """Return the current time in epoch milliseconds."""
    return int(datetime.now(UTC).timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class FirstTry:
    """The time and the newest snapshot before the first attempt of a task."""

    millis: int | None
    """A time before the first commit of the task, in epoch milliseconds; None if unknown."""
    head: str | None
    """The identity of the newest snapshot that the first attempt found; None if unknown."""


def find_first_try(
    context: Context, subject: str, head: Callable[[], str | None], *, is_resumed: bool = False
) -> FirstTry:
    """Return a time not later than this task's first attempt, and the newest snapshot at the start
    of that attempt; each may be None.

    The time is the start of the DAG run. If that is unknown, it is the time of the first attempt.
    The first attempt stores time and snapshot in the task's state store, which outlives retries and
    clears; later attempts read them there. ``head`` returns the identity of the newest snapshot.
    ``subject`` is the table or database. After a deferral, ``is_resumed`` is True: then the task
    may have committed already, so nothing is stored.
    """
    began, store = first_try_millis(context["dag_run"]), context.get("task_state_store")
    if store is None:
        return FirstTry(began, None)
    key = f"lake-first-try:{subject}"
    kept: Any = store.get(key)
    if isinstance(kept, dict):
        return FirstTry(**kept)
    if is_resumed or context["ti"].try_number != 1:
        return FirstTry(began, None)
    seen = FirstTry(now_millis() if began is None else began, head())
    return seen if _keeps(store, subject, key, seen) else FirstTry(began, None)


def _keeps(store: Any, subject: str, key: str, seen: FirstTry) -> bool:
    from airflow.sdk.exceptions import AirflowRuntimeError

    try:
        store.set(key, asdict(seen))
    except AirflowRuntimeError as reason:
        _log.warning(
            "Airflow's task state store did not store which snapshot of %s was the newest before "
            "the first attempt: %s. No action is needed now. If snapshots expire before a retry, "
            "the retry may fail, because it cannot check if its commit was published",
            subject,
            reason,
        )
        return False
    return True
