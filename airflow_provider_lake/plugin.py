"""What templates get: ``{{ macros.lake.commit_user(ti, 'shop.orders') }}``."""

from __future__ import annotations

from airflow.sdk.plugins_manager import AirflowPlugin

from airflow_provider_lake.identity import commit_user

__all__ = ["LakePlugin"]


class LakePlugin(AirflowPlugin):
    """Found through the entry point ``airflow.plugins``; its name is the macros' namespace."""

    name = "lake"
    macros = [commit_user]  # noqa: RUF012 - Airflow's own declaration
