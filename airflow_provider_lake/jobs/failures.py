# SPDX-License-Identifier: Apache-2.0
"""Maps the library's errors to failures of Airflow tasks, with or without retry.

==========================  ============================================================
error of the library        the task
==========================  ============================================================
``InvalidRequestError``     fails at once: a retry would send the same request. A job on many
                            tables raises it if every table refuses the request
``CorruptTableError``       fails at once: the table needs repair
``CommitUndecidableError``  fails at once: the snapshots that would decide have expired
``AlreadyExistsError``      fails at once: the name remains taken
``UnhealthyTableError``     fails at once: a retry would find the same health
``AccessDeniedError``       fails at once: the user of the task lacks a permission
``FailedChecksError``       fails at once: a retry would find the same rows
``NotFoundError``           fails at once. It is retried only if the task names something that may
                            still appear, such as files or a later snapshot
``SnapshotExpiredError``    fails, and is retried: a retry reads a newer snapshot, or finds that
                            the snapshot that the task names is missing
``CommitConflictError``     fails at once if other commits conflict with ``read_snapshot``, or if
                            the buckets of staged rows have changed: a retry would commit the same
                            files or rows. Otherwise it is retried
``PartlyFailedError``       fails, and is retried: a retry continues with the remaining tables
any other ``LakeError``     fails, and is retried as set in the DAG
==========================  ============================================================

A task whose connection does not exist fails at once, too. Errors that are retried keep their class,
with engine Spark as well. So a ``retry_policy`` can distinguish ``lakeformat.CommitConflictError``
(plan again) from ``lakeformat.UnavailableError`` (wait).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_lake.compat import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)

if TYPE_CHECKING:
    from spark_jobs.runtime.job import PartlyFailedError

__all__ = ["LakeTaskKilled", "failing_for_good", "raise_failure"]


class LakeTaskKilled(BaseException):
    """The task must end now. As a ``BaseException``, it is not caught by handlers of
    ``Exception``.
    """


@contextmanager
def failing_for_good(*, may_come: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Raise ``AirflowFailException`` if the block raises an error that a retry would meet again.

    ``may_come`` is called after a ``NotFoundError``: if it returns True, a retry may find the
    object, and the error is raised unchanged.
    """
    from lakeformat import (
        AccessDeniedError,
        AlreadyExistsError,
        CommitConflictError,
        CommitUndecidableError,
        CorruptTableError,
        InvalidRequestError,
        NotFoundError,
        SnapshotExpiredError,
        TableReplacedError,
    )
    from spark_jobs.check import FailedChecksError
    from spark_jobs.health import UnhealthyTableError

    try:
        yield
    except AirflowNotFoundException as reason:
        raise AirflowFailException(str(reason)) from reason
    except (
        AccessDeniedError,
        AlreadyExistsError,
        CommitUndecidableError,
        CorruptTableError,
        FailedChecksError,
        InvalidRequestError,
        UnhealthyTableError,
    ) as reason:
        raise _for_good(reason) from reason
    except CommitConflictError as reason:
        if reason.is_final and not isinstance(reason, TableReplacedError):
            raise _for_good(reason) from reason
        raise
    except NotFoundError as reason:
        if isinstance(reason, SnapshotExpiredError) or may_come():
            raise
        raise _for_good(reason) from reason


def raise_failure(failed: Mapping[str, Any], otherwise: Exception) -> NoReturn:
    """Raise the error that a job in another process has reported in ``failed``, with its class.

    Raise ``AirflowException`` for an error that is not of this library, and ``otherwise`` if the
    job has reported no error.
    """
    import lakeformat
    from spark_jobs.check import FailedChecksError
    from spark_jobs.health import UnhealthyTableError
    from spark_jobs.runtime.job import PartlyFailedError

    name = str(failed.get("error"))
    if name == PartlyFailedError.__name__ and "report" in failed:
        raise _partly(failed) from otherwise
    of_jobs = {each.__name__: each for each in (FailedChecksError, UnhealthyTableError)}
    kind = of_jobs.get(name) or getattr(lakeformat, name, None)
    if isinstance(kind, type) and issubclass(kind, lakeformat.LakeError):
        error: Any = kind(failed.get("message"))
        if failed.get("is_final"):
            error.is_final = True
        if "report" in failed:
            error.result = _done(failed)
        raise error from otherwise
    if "error" in failed:
        raise AirflowException(f"{failed['error']}: {failed.get('message')}") from otherwise
    raise otherwise


def _partly(failed: Mapping[str, Any]) -> PartlyFailedError:
    """Return the ``PartlyFailedError`` with the results of the tables that succeeded."""
    from spark_jobs.runtime.command import CONFLICT
    from spark_jobs.runtime.job import PartlyFailedError

    is_conflict = failed.get("exit_code") == CONFLICT
    return PartlyFailedError.of_result(
        str(failed["message"]), _done(failed), is_conflict=is_conflict
    )


def _done(failed: Mapping[str, Any]) -> dict[str, Any]:
    of_failure = ("error", "message", "exit_code", "is_final")
    return {name: value for name, value in failed.items() if name not in of_failure}


def _for_good(reason: Exception) -> AirflowFailException:
    return AirflowFailException(f"{type(reason).__name__}: {reason}")
