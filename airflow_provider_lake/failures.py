"""From the library's errors to what Airflow does next.

==========================  ============================================================
the library says            the task
==========================  ============================================================
``InvalidRequestError``     fails at once: a retry asks the same; also where each of many tables
                            has said so
``CorruptTableError``       fails at once: the table needs repair
``CommitUndecidableError``  fails at once: what would tell has expired and stays so
``AlreadyExistsError``      fails at once: the name stays taken
``UnhealthyTableError``     fails at once: the table fares as badly a moment later
``NotFoundError``           fails at once, unless the table is there and the task names what
                            may still come: files, a later snapshot
``SnapshotExpiredError``    fails, and is retried: a retry reads what is newer, or is told that
                            what it names is not there
``PartlyFailedError``       fails, and is retried: a retry goes on with the tables that are left
any other ``LakeError``     fails, and is retried as the DAG says
==========================  ============================================================

An absent connection fails at once, too. Errors that are retried keep their class, with engine
Spark as well, so that a ``retry_policy`` can tell ``lakeformat.CommitConflictError`` (plan again)
from ``lakeformat.UnavailableError`` (wait).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)

if TYPE_CHECKING:
    from spark_jobs.runtime.job import PartlyFailedError

__all__ = ["LakeTaskKilled", "failing_for_good", "raise_failure"]


class LakeTaskKilled(BaseException):
    """The task is to end now; no handler of ordinary errors takes it for one."""


@contextmanager
def failing_for_good(*, may_come: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Spare the task those retries that cannot help.

    ``may_come`` is asked when something was not found: whether a retry may find it.
    """
    from lakeformat import (
        AlreadyExistsError,
        CommitUndecidableError,
        CorruptTableError,
        InvalidRequestError,
        NotFoundError,
        SnapshotExpiredError,
    )
    from spark_jobs.health import UnhealthyTableError

    try:
        yield
    except AirflowNotFoundException as reason:
        raise AirflowFailException(str(reason)) from reason
    except (
        AlreadyExistsError,
        CommitUndecidableError,
        CorruptTableError,
        InvalidRequestError,
        UnhealthyTableError,
    ) as reason:
        raise _for_good(reason) from reason
    except NotFoundError as reason:
        if isinstance(reason, SnapshotExpiredError) or may_come():
            raise
        raise _for_good(reason) from reason


def raise_failure(failed: Mapping[str, Any], otherwise: Exception) -> NoReturn:
    """Raise what a job elsewhere has said about its failure, by the class it named."""
    import lakeformat
    from spark_jobs.health import UnhealthyTableError
    from spark_jobs.runtime.job import PartlyFailedError

    name = str(failed.get("error"))
    if name == PartlyFailedError.__name__ and "report" in failed:
        raise _partly(failed) from otherwise
    of_jobs = {UnhealthyTableError.__name__: UnhealthyTableError}
    kind = of_jobs.get(name) or getattr(lakeformat, name, None)
    if isinstance(kind, type) and issubclass(kind, lakeformat.LakeError):
        error: Any = kind(failed.get("message"))
        if "report" in failed:
            error.result = _done(failed)
        raise error from otherwise
    if "error" in failed:
        raise AirflowException(f"{failed['error']}: {failed.get('message')}") from otherwise
    raise otherwise


def _partly(failed: Mapping[str, Any]) -> PartlyFailedError:
    """What a job elsewhere has done all the same comes with the error, as it does here."""
    from spark_jobs.runtime.command import CONFLICT
    from spark_jobs.runtime.job import PartlyFailedError

    is_conflict = failed.get("exit_code") == CONFLICT
    return PartlyFailedError.of_result(
        str(failed["message"]), _done(failed), is_conflict=is_conflict
    )


def _done(failed: Mapping[str, Any]) -> dict[str, Any]:
    """What the job would have returned."""
    of_failure = ("error", "message", "exit_code")
    return {name: value for name, value in failed.items() if name not in of_failure}


def _for_good(reason: Exception) -> AirflowFailException:
    return AirflowFailException(f"{type(reason).__name__}: {reason}")
