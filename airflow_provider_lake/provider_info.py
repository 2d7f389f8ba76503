"""What Airflow asks every provider at each start; so it imports nothing."""

from __future__ import annotations

from typing import Any

__all__ = ["get_provider_info"]

_INTEGRATION = "Lake tables"


def get_provider_info() -> dict[str, Any]:
    """Name, modules and the form of the connection type ``lake``."""
    return {
        "package-name": "airflow-provider-lake",
        "name": "Lake",
        "description": "Keeps Apache Paimon tables healthy with nothing but Spark and Python.",
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["software"]}],
        "hooks": [_modules("airflow_provider_lake.hooks.lake")],
        "operators": [_modules("airflow_provider_lake.operators.ingest")],
        "connection-types": [_lake_connection()],
    }


def _modules(*names: str) -> dict[str, Any]:
    return {"integration-name": _INTEGRATION, "python-modules": list(names)}


def _lake_connection() -> dict[str, Any]:
    return {
        "connection-type": "lake",
        "hook-name": "Lake",
        "hook-class-name": "airflow_provider_lake.hooks.lake.LakeHook",
        "ui-field-behaviour": {
            "hidden-fields": ["host", "port", "login", "password", "schema"],
            "placeholders": {"warehouse": "/data/warehouse"},
        },
        "conn-fields": {
            "warehouse": {
                "label": "Warehouse",
                "description": "Path or URI of the directory that holds the databases.",
                "schema": {"type": "string", "minLength": 1},
            },
        },
    }
