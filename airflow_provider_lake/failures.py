"""From the library's errors to what Airflow does next.

=========================  ========================================
the library says           the task
=========================  ========================================
``InvalidRequestError``    fails at once: a retry asks the same
``CorruptTableError``      fails at once: the table needs repair
any other ``LakeError``    fails, and is retried as the DAG says
=========================  ========================================
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

__all__ = ["failing_for_good"]


@contextmanager
def failing_for_good() -> Iterator[None]:
    """Spare the task those retries that cannot help."""
    from lakeformat import CorruptTableError, InvalidRequestError

    try:
        yield
    except (InvalidRequestError, CorruptTableError) as reason:
        raise AirflowFailException(f"{type(reason).__name__}: {reason}") from reason
