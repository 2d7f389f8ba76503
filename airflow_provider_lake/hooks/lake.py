# SPDX-License-Identifier: Apache-2.0
"""The hook of the connection type ``lake``: opens the catalog and its tables."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from airflow_provider_lake.compat import AirflowNotFoundException, with_form
from airflow_provider_lake.hooks.connection import CONNECTION_TYPE, LakeConnection, read_connection
from airflow_provider_lake.jobs.identity import ONLY_COMMIT, commit_user, find_first_try

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from lakeformat import Catalog, CommitId, CompactPlan, HealthReport, Snapshot, Table
    from lakeformat.catalog.iceberg import IcebergCatalog
    from lakeformat.doctor import Finding

__all__ = ["LakeHook"]

_LOCAL_WAREHOUSE = "./warehouse"


@with_form
class LakeHook(BaseHook):
    """Opens a lake by its connection. If ``lake_default`` does not exist, the warehouse is
    ``./warehouse``.
    """

    conn_name_attr = "lake_conn_id"
    default_conn_name = "lake_default"
    conn_type = CONNECTION_TYPE
    hook_name = "Lake"

    def __init__(self, lake_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.lake_conn_id = lake_conn_id

    @property
    def warehouse(self) -> str:
        """The path or URI of the warehouse."""
        return self.lake.warehouse

    @property
    def catalog_options(self) -> dict[str, str]:
        """The connection's options of the catalog and its storage; some may be secrets."""
        return dict(self.lake.options)

    @cached_property
    def lake(self) -> LakeConnection:
        """The settings of the connection, looked up at the first access.

        If ``lake_default`` does not exist, the warehouse is ``./warehouse``; any other missing
        connection raises ``AirflowNotFoundException``. A wrong connection raises
        ``InvalidRequestError``, and a failed secrets backend ``UnavailableError``.
        """
        try:
            connection = self._found()
        except AirflowNotFoundException:
            if self.lake_conn_id != self.default_conn_name:
                raise AirflowNotFoundException(
                    f"connection {self.lake_conn_id!r} does not exist: create it with type 'lake' "
                    f"and a warehouse, or leave out lake_conn_id to use {self.default_conn_name}"
                ) from None
            here = Path(_LOCAL_WAREHOUSE).absolute()
            self.log.warning(
                "connection %s does not exist: using the warehouse %s. To use another warehouse, "
                "create the connection with type 'lake'",
                self.lake_conn_id,
                here,
            )
            return LakeConnection(_LOCAL_WAREHOUSE)
        return read_connection(connection)

    def _found(self) -> Connection:
        """Return the connection. Raise ``AirflowNotFoundException`` only if no secrets backend has
        the connection. Raise ``InvalidRequestError`` if an environment variable has the connection
        but cannot be read, and ``UnavailableError`` if any other secrets backend fails.
        """
        try:
            return self.get_connection(self.lake_conn_id)
        except AirflowNotFoundException:
            from airflow_provider_lake.hooks.absent_connection import refuse_unreadable  # only then

            refuse_unreadable(self.lake_conn_id)
            raise

    def get_conn(self) -> Catalog:
        """Return the catalog of the warehouse.

        If the connection has the format ``iceberg``, return the catalog of its Iceberg tables. The
        methods of both catalogs have the same names: see ``docs/iceberg-catalogs.md``.
        """
        return self._catalog

    def table(self, name: str) -> Table:
        """Open a table by its name ``database.table``; raise ``NotFoundError`` if it does not
        exist.

        Each method call on the table reads its newest snapshot.
        """
        return self._catalog.table(name)

    def latest_snapshot(self, name: str) -> Snapshot | None:
        """Return the newest snapshot of a table; None before the first commit. Raise
        ``NotFoundError`` if the table does not exist.
        """
        return self.table(name).latest_snapshot()

    def snapshots(self, name: str) -> list[Snapshot]:
        """Return the snapshots of a table that have not expired, oldest first. Raise
        ``NotFoundError`` if the table does not exist.
        """
        return self.table(name).snapshots()

    def plan_compaction(self, name: str, **wanted: Any) -> CompactPlan:
        """Return the plan of a compaction, with a reason for each bucket. The arguments are those
        of ``Table.plan_compaction``. Raise ``NotFoundError`` if the table does not exist.
        """
        return self.table(name).plan_compaction(**wanted)

    def health(self, name: str, **wanted: Any) -> HealthReport:
        """Return facts about a table, a score, and reasons with advice. The arguments are those of
        ``Table.health``. Raise ``NotFoundError`` if the table does not exist.
        """
        return self.table(name).health(**wanted)

    def commit_id(self, context: Context, name: str, *, is_resumed: bool = False) -> CommitId:
        """Return the commit identity of the running task for a table: the same in each attempt.

        Call this method before the task reads or writes the table, which need not exist yet. Pass
        ``is_resumed=True`` in the method that Airflow calls after a deferral, because the task may
        have committed before.
        """
        from lakeformat import CommitId

        first = find_first_try(context, name, lambda: self._head_of(name), is_resumed=is_resumed)
        return CommitId(
            commit_user(context["ti"], name),
            ONLY_COMMIT,
            first_try_millis=first.millis,
            first_try_head=first.head,
        )

    def _head_of(self, name: str) -> str | None:
        from lakeformat import NotFoundError

        try:
            head = self.latest_snapshot(name)
        except NotFoundError:
            return None
        return None if head is None else head.identity

    def test_connection(self) -> tuple[bool, str]:
        """Return True and a sentence for the user if the test passes, and False and the reason if
        it fails. Never raises.

        The test passes if this machine can list the databases. A warehouse that is a local
        directory must also be writable.
        """
        try:
            from lakeformat.doctor import diagnose

            catalog = self._catalog
            databases = catalog.list_databases()
            findings = diagnose(self.warehouse) if _is_directory(catalog) else []
        except Exception as reason:  # noqa: BLE001 - the answer is for a person at a form
            return False, f"{type(reason).__name__}: {reason}"
        return _verdict(catalog.location, databases, findings)

    @cached_property
    def _catalog(self) -> Catalog:
        from lakeformat import open_catalog

        return open_catalog(self.warehouse, options=self.catalog_options)


def _is_directory(catalog: Catalog | IcebergCatalog) -> bool:
    """Return True if the warehouse is a directory, False if it is a name in a catalog service."""
    return getattr(catalog, "is_directory", True)


def _verdict(location: str, databases: list[str], findings: list[Finding]) -> tuple[bool, str]:
    """Return True if the connection test has passed, and the message of the test. Only the
    warehouse can fail the test: Java and Spark may be missing on the API server.
    """
    warehouse = next((finding for finding in findings if finding.name == "warehouse"), None)
    if warehouse is not None and warehouse.status == "fail":
        return False, f"{warehouse.found}: set 'warehouse' to a folder that is writable here"
    message = f"{location} has {len(databases)} database{'' if len(databases) == 1 else 's'}"
    problems = [f for f in findings if f.status == "fail"]
    if problems:
        message += "; on this machine: " + ", ".join(f"{f.name}: {f.found}" for f in problems)
    return True, message
