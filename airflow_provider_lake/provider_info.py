# SPDX-License-Identifier: Apache-2.0
"""The metadata that Airflow reads from every provider at each start. This module imports no other
module of the provider, to keep the start fast.
"""

from __future__ import annotations

from typing import Any

__all__ = ["get_provider_info"]

_INTEGRATION = "Lake tables"
_OPERATORS = (
    "ingest",
    "check",
    "commit",
    "delete",
    "update",
    "maintain",
    "compact",
    "compact_database",
    "changelog",
    "rescale",
    "expire_snapshots",
    "expire_partitions",
    "remove_orphans",
    "tag",
    "rollback",
    "analyze",
    "publish",
    "health",
)
_SENSORS = ("snapshot", "watermark", "partition", "compaction", "consumer", "publication")
_TRIGGERS = ("table", "snapshot_event", "process", "driver")
_DECORATORS = ("lake_job", "lake_commit")


def get_provider_info() -> dict[str, Any]:
    """Return the name, modules, links, settings, and the form of the connection type ``lake``."""
    return {
        "package-name": "airflow-provider-lake",
        "name": "Lake",
        "description": "Keeps Paimon and Iceberg tables healthy, with Python alone or with Spark.",
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://paimon.apache.org/",
                "tags": ["software"],
            }
        ],
        "hooks": [_modules("airflow_provider_lake.hooks.lake")],
        "operators": [_modules(*(f"airflow_provider_lake.operators.{job}" for job in _OPERATORS))],
        "sensors": [_modules(*(f"airflow_provider_lake.sensors.{name}" for name in _SENSORS))],
        "triggers": [_modules(*(f"airflow_provider_lake.triggers.{name}" for name in _TRIGGERS))],
        "task-decorators": [
            {"name": name, "class-name": f"airflow_provider_lake.decorators.{name}.{name}_task"}
            for name in _DECORATORS
        ],
        "notifications": ["airflow_provider_lake.notifications.health.LakeHealthNotifier"],
        "asset-uris": [_lake_assets()],
        "connection-types": [_lake_connection()],
        "extra-links": [
            "airflow_provider_lake.links.LakeSnapshotLink",
            "airflow_provider_lake.links.LakeSparkLink",
        ],
        "config": {"lake": {"description": "Lake tables.", "options": _settings()}},
    }


def _modules(*names: str) -> dict[str, Any]:
    return {"integration-name": _INTEGRATION, "python-modules": list(names)}


def _settings() -> dict[str, Any]:
    return {
        "snapshot_url": _setting(
            "Address in a table browser that a task's link 'Lake snapshot' opens, with {database}, "
            "{table} and {snapshot_id} as placeholders. Default: the task's tab 'Lake snapshots'.",
            "https://tables.example.org/{database}/{table}?snapshot={snapshot_id}",
        ),
        "spark_history_url": _setting(
            "Address of the Spark history server that a task's link 'Spark UI' opens. Default: the "
            "page of the task's driver, which exists only while the driver runs.",
            "https://spark-history.example.org",
        ),
    }


def _setting(description: str, example: str) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": "string",
        "example": example,
        "default": "",
    }


def _lake_assets() -> dict[str, Any]:
    return {
        "schemes": ["lake"],
        "handler": "airflow_provider_lake.assets.uri.sanitize_uri",
        "factory": "airflow_provider_lake.assets.uri.create_asset",
        "to_openlineage_converter": "airflow_provider_lake.assets.openlineage.to_dataset",
    }


def _lake_connection() -> dict[str, Any]:
    return {
        "connection-type": "lake",
        "hook-name": "Lake",
        "hook-class-name": "airflow_provider_lake.hooks.lake.LakeHook",
        # The host is the warehouse: the form shows fields of its own only in collapsed sections.
        "ui-field-behaviour": {
            "hidden-fields": ["port", "login", "password", "schema", "extra"],
            "relabeling": {"host": "Warehouse"},
            "placeholders": {"host": "/data/warehouse, s3://bucket/warehouse, gs://… or abfss://…"},
        },
        "conn-fields": {
            **_engine_fields(),
            **_catalog_fields(),
            **_s3_fields(),
            **_google_fields(),
            **_azure_fields(),
        },
    }


def _catalog_fields() -> dict[str, Any]:
    return {
        "format": {
            "label": "Table format",
            "description": "The format of the tables in the catalog.",
            "schema": {
                "type": ["string", "null"],
                "enum": ["paimon", "iceberg", None],
                "values_display": {"null": "Default: paimon"},
            },
        },
        "metastore": {
            "label": "Metastore",
            "description": "Keeps the list of tables. For Paimon: directories (filesystem), or a "
            "SQL database (jdbc). For Iceberg: directories (path), a SQL database (sql), or a "
            "service (rest, hive, glue).",
            "schema": {
                "type": ["string", "null"],
                "enum": ["filesystem", "jdbc", "path", "sql", "rest", "hive", "glue", None],
                "values_display": {"null": "Default: filesystem, or path for Iceberg"},
            },
        },
        "uri": _secret(
            "Address of the metastore",
            "For jdbc, sql, rest and hive, such as "
            "postgresql+psycopg2://user:password@host/catalog or https://catalog.example.org. "
            "The value is hidden.",
        ),
        "external_roots": _text(
            "External roots",
            "Directories in which tables may have files outside of their own directories, "
            "separated by commas. "
            "Default: tables read and delete files only in their own directory.",
        ),
        "options": {
            "label": "Other options",
            "description": "Options of the catalog and its storage, as a JSON object of strings.",
            "schema": {"type": ["object", "null"]},
        },
        "secret_options": _secret(
            "Other secret options", "More options, as JSON text that is hidden."
        ),
    }


def _s3_fields() -> dict[str, Any]:
    section = "Amazon S3 and compatible stores"
    return {
        "s3_endpoint": _text(
            "S3 endpoint",
            "Address of the store, such as https://s3.example.org. Default: AWS.",
            section,
        ),
        "s3_region": _text("S3 region", "Default: us-east-1.", section),
        "s3_access_key": _text(
            "S3 access key", "Default: the credentials in the worker's environment.", section
        ),
        "s3_secret_key": _secret("S3 secret key", "Belongs to the access key.", section),
        "s3_session_token": _secret("S3 session token", "Only for a temporary key.", section),
    }


def _google_fields() -> dict[str, Any]:
    section = "Google Cloud Storage"
    return {
        "gs_key_file": _text(
            "Key file",
            "Path of a service account's key file on every worker, not the key itself. Default: "
            "the credentials in the worker's environment.",
            section,
        ),
        "gs_access_token": _secret("Access token", "Instead of a key file.", section),
    }


def _azure_fields() -> dict[str, Any]:
    section = "Azure Data Lake Storage"
    return {
        "azure_account": _text(
            "Storage account", "Not needed if the address of the warehouse names it.", section
        ),
        "azure_account_key": _secret(
            "Account key",
            "One of: account key, SAS token, service principal. Default: the credentials in the "
            "worker's environment.",
            section,
        ),
        "azure_sas_token": _secret("SAS token", "A shared access signature.", section),
        "azure_tenant_id": _text("Tenant id", "The tenant of a service principal.", section),
        "azure_client_id": _text("Client id", "The client id of a service principal.", section),
        "azure_client_secret": _secret(
            "Client secret", "The client secret of a service principal.", section
        ),
    }


def _text(label: str, description: str, section: str | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"]}
    if section is not None:
        schema["section"] = section
    return {"label": label, "description": description, "schema": schema}


def _secret(label: str, description: str, section: str | None = None) -> dict[str, Any]:
    field = _text(label, description, section)
    field["schema"]["format"] = "password"
    return field


def _engine_fields() -> dict[str, Any]:
    return {
        "engine": {
            "label": "Engine",
            "description": "Engine for tasks with engine='auto'.",
            "schema": {
                "type": ["string", "null"],
                "enum": ["auto", "python", "spark", None],
                "values_display": {"null": "Default: auto"},
                "default": "auto",
            },
        },
        "spark_conn_id": {
            "label": "Spark connection",
            "description": "Id of a Spark connection. If set, 'auto' uses Spark for work on rows.",
            "schema": {"type": ["string", "null"]},
        },
    }
