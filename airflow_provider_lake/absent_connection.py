"""Whether a connection is absent: Airflow says so, too, of one that is there and cannot be read."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowNotFoundException

__all__ = ["refuse_unreadable"]

_ENVIRONMENT = "EnvironmentVariablesBackend"


def refuse_unreadable(conn_id: str, team: str | None = None) -> None:
    """Return where nobody knows the connection; raise where somebody failed to say.

    Airflow passes over what a secrets backend raises, and takes the connection for undefined. A
    default in its place would be another lake, or another Spark, than the one that is meant.
    With a team the backends are asked for the connection as that team sees it.
    """
    from airflow.sdk._shared.secrets_backend.base import call_secrets_backend_method
    from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

    for backend in ensure_secrets_backend_loaded():
        try:
            call_secrets_backend_method(backend.get_connection, team_name=team, conn_id=conn_id)
        except (AirflowNotFoundException, NotImplementedError):
            continue  # it knows none, or keeps no connections at all, only variables
        except Exception as reason:  # noqa: BLE001 - each backend has errors of its own
            raise _unreadable(conn_id, type(backend).__name__, reason) from None


def _unreadable(conn_id: str, backend: str, reason: Exception) -> Exception:
    """What went wrong by its class alone: the words may hold the whole connection."""
    from lakeformat import InvalidRequestError, UnavailableError

    kind = type(reason).__name__
    if backend == _ENVIRONMENT:
        return InvalidRequestError(
            f"connection {conn_id!r} is there, and cannot be read ({kind}): make the variable "
            f"AIRFLOW_CONN_{conn_id.upper()} whole JSON, or a URI"
        )
    return UnavailableError(
        f"whether there is a connection {conn_id!r} is not known: {backend} failed with {kind}. "
        "Retry once it answers; its own log says more"
    )
