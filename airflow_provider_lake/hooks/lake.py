"""The hook of the connection type ``lake``: where the warehouse is, and its catalog."""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from lakeformat import Catalog, InvalidRequestError
    from lakeformat.doctor import Finding

__all__ = ["LakeHook"]

_LOCAL_WAREHOUSE = "./warehouse"
# A uri may hold a password.
_SECRET = re.compile(r"(?i)^uri$|access-key|account\.key|password|secret|token")
_UNUSED_FIELDS = ("host", "port", "login", "password", "schema")


class LakeHook(BaseHook):
    """A lake by its connection; without one, the default id means ``./warehouse``."""

    conn_name_attr = "lake_conn_id"
    default_conn_name = "lake_default"
    conn_type = "lake"
    hook_name = "Lake"

    def __init__(self, lake_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.lake_conn_id = lake_conn_id

    @property
    def warehouse(self) -> str:
        """Path or URI of the warehouse."""
        return self._settings[0]

    @property
    def catalog_options(self) -> dict[str, str]:
        """The connection's ``options``: of the catalog and its storage; some are secrets."""
        return self._settings[1]

    @cached_property
    def _settings(self) -> tuple[str, dict[str, str]]:
        """What the connection says; an id other than the default one has to exist."""
        try:
            connection = self.get_connection(self.lake_conn_id)
        except AirflowNotFoundException:
            if self.lake_conn_id != self.default_conn_name:
                raise
            here = Path(_LOCAL_WAREHOUSE).absolute()
            self.log.warning("no connection %s: the warehouse is %s", self.lake_conn_id, here)
            return _LOCAL_WAREHOUSE, {}
        return _settings_of(connection)

    def get_conn(self) -> Catalog:
        """The catalog of the warehouse."""
        return self._catalog

    def test_connection(self) -> tuple[bool, str]:
        """Whether the warehouse can be listed and written from here; never raises."""
        try:
            from lakeformat.doctor import diagnose

            databases = self._catalog.list_databases()
            findings = diagnose(self.warehouse)
        except Exception as reason:  # noqa: BLE001 - the answer is for a person at a form
            return False, f"{type(reason).__name__}: {reason}"
        return _verdict(self._catalog.location, databases, findings)

    @cached_property
    def _catalog(self) -> Catalog:
        from lakeformat import open_catalog

        return open_catalog(self.warehouse, options=self.catalog_options)


def _settings_of(connection: Connection) -> tuple[str, dict[str, str]]:
    """Warehouse and options; anything else a connection asks for is refused, not ignored."""
    name = f"connection {connection.conn_id!r}"
    if connection.conn_type != LakeHook.conn_type:
        raise _refusal(f"{name} is of type {connection.conn_type!r}, not 'lake'")
    fields = {field: getattr(connection, field) for field in _UNUSED_FIELDS}
    given: dict[str, Any] = {
        key: value
        for key, value in (fields | _extra_of(connection, name)).items()
        if value not in (None, "")
    }
    warehouse = given.pop("warehouse", None)
    options = given.pop("options", {})
    if given:
        shown = ", ".join(map(repr, given))
        raise _refusal(f"{name} sets {shown}: only 'warehouse' and 'options' are known")
    if not isinstance(warehouse, str):
        raise _refusal(f"{name} names no warehouse: set it to a path or URI")
    if not isinstance(options, dict) or not all(isinstance(v, str) for v in options.values()):
        raise _refusal(f"{name} has options that are no object of texts")  # not shown: secrets
    for key, value in options.items():
        if _SECRET.search(key):
            mask_secret(value)
    return warehouse, options


def _extra_of(connection: Connection, name: str) -> dict[str, Any]:
    """The object in ``extra``; Airflow itself warns of anything else, or breaks on it."""
    text = connection.extra or ""
    if not text.strip():
        return {}
    try:
        extra = json.loads(text)
    except ValueError:
        extra = None
    if not isinstance(extra, dict):  # not shown: it may hold a secret
        raise _refusal(
            f'{name} has an extra that is no JSON object: write {{"warehouse": "/path/or/uri"}}'
        )
    return extra


def _verdict(location: str, databases: list[str], findings: list[Finding]) -> tuple[bool, str]:
    """Only the warehouse decides; Java and Spark may well be missing where the form is served."""
    warehouse = next(finding for finding in findings if finding.name == "warehouse")
    if warehouse.status == "fail":
        return False, f"{warehouse.found}: set 'warehouse' to a folder that can be written here"
    said = f"{location} has {len(databases)} database{'' if len(databases) == 1 else 's'}"
    problems = [f for f in findings if f.status == "fail"]
    if problems:
        said += "; on this machine: " + ", ".join(f"{f.name}: {f.found}" for f in problems)
    return True, said


def _refusal(reason: str) -> InvalidRequestError:
    from lakeformat import InvalidRequestError

    return InvalidRequestError(reason)
