"""The version of Airflow that the tests run with: names that have moved, and what came later."""

from importlib import import_module
from importlib.metadata import version

import pytest
from packaging.version import Version

from airflow_provider_lake.compat import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

AIRFLOW = Version(Version(version("apache-airflow-core")).base_version)

# Each with its module now and in Airflow 3.1; only those that a test asks for are imported.
_MOVED = {
    "AsyncCallback": ("airflow.sdk", "airflow.sdk.definitions.deadline"),
    "AirflowTaskTimeout": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "DeadlineAlert": ("airflow.sdk", "airflow.sdk.definitions.deadline"),
    "DeadlineReference": ("airflow.sdk", "airflow.sdk.definitions.deadline"),
    "DagBag": ("airflow.dag_processing.dagbag", "airflow.models.dagbag"),
    "SafeOtelLogger": (
        "airflow.sdk._shared.observability.metrics.otel_logger",
        "airflow.metrics.otel_logger",
    ),
    "SafeStatsdLogger": (
        "airflow.sdk._shared.observability.metrics.statsd_logger",
        "airflow.metrics.statsd_logger",
    ),
    "TaskDeferred": ("airflow.sdk.exceptions", "airflow.exceptions"),
}

__all__ = [
    "AIRFLOW",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSkipException",
    "forget_teams",
    "macros_of_plugins",
    "providers_of_tasks",
    "since",
]


def __getattr__(name):
    if name not in _MOVED:
        raise AttributeError(name)
    now, before = _MOVED[name]
    try:
        return getattr(import_module(now), name)
    except (ImportError, AttributeError):
        return getattr(import_module(before), name)


def since(first, what):
    """Skip a test of something that older versions of Airflow do not have."""
    return pytest.mark.skipif(Version(first) > AIRFLOW, reason=f"Airflow {first} added {what}")


def forget_teams():
    """Forget the teams of DAGs that Airflow has looked up; it keeps them since 3.3."""
    from airflow.models import dag

    getattr(dag, "_team_name_cache", {}).clear()


def providers_of_tasks():
    """Return the manager of providers that a task's process asks."""
    if AIRFLOW.release < (3, 2):
        from airflow.providers_manager import ProvidersManager

        return ProvidersManager()
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    return ProvidersManagerTaskRuntime()


def macros_of_plugins():
    """Return the module of macros, with those of plugins."""
    now, before = "airflow.sdk.plugins_manager", "airflow.plugins_manager"
    import_module(before if AIRFLOW.release < (3, 2) else now).integrate_macros_plugins()
    return import_module("airflow.sdk.execution_time.macros")
