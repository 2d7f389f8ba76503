# SPDX-License-Identifier: Apache-2.0
"""Checks that a connection is really absent. Airflow also reports a connection as absent if it
exists but cannot be read.
"""

from __future__ import annotations

from airflow_provider_lake.compat import AirflowNotFoundException, find_in_backend

__all__ = ["refuse_unreadable"]

_ENVIRONMENT = "EnvironmentVariablesBackend"


def refuse_unreadable(conn_id: str, team: str | None = None) -> None:
    """Raise an error if a secrets backend fails to look up the connection.

    Airflow ignores the failure of a backend, and treats the connection as missing. A task would
    then use a default, and so the wrong lake or the wrong Spark. ``team`` is passed to each backend
    that accepts a team.

    Raise ``InvalidRequestError`` if an environment variable has the connection but cannot be read,
    and ``UnavailableError`` if any other secrets backend fails.
    """
    from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

    for backend in ensure_secrets_backend_loaded():
        try:
            find_in_backend(backend, conn_id, team)
        except (AirflowNotFoundException, NotImplementedError):
            continue  # the backend has no such connection, or holds only variables
        except Exception as reason:  # noqa: BLE001 - each backend has errors of its own
            raise _unreadable(conn_id, type(backend).__name__, reason) from None


def _unreadable(conn_id: str, backend: str, reason: Exception) -> Exception:
    """Return the error for a connection that ``backend`` failed to read. The error names only the
    class of ``reason``, because the text of ``reason`` may contain the whole connection.
    """
    from lakeformat import InvalidRequestError, UnavailableError

    kind = type(reason).__name__
    if backend == _ENVIRONMENT:
        return InvalidRequestError(
            f"connection {conn_id!r} exists but cannot be read ({kind}): set the variable "
            f"AIRFLOW_CONN_{conn_id.upper()} to valid JSON, or to a URI"
        )
    return UnavailableError(
        f"connection {conn_id!r} cannot be looked up: {backend} failed with {kind}. Check the log "
        "of this backend, and retry when it answers"
    )
