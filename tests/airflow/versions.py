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
    "AirflowTaskTimeout": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "DagBag": ("airflow.dag_processing.dagbag", "airflow.models.dagbag"),
    "TaskDeferred": ("airflow.sdk.exceptions", "airflow.exceptions"),
}

__all__ = [
    "AIRFLOW",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSkipException",
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
