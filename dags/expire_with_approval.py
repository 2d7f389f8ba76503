# SPDX-License-Identifier: Apache-2.0
"""Lists the snapshots that would expire, waits for approval, and then deletes them.

Prerequisites: a table ``shop.orders``; the connection ``lake_default`` names the warehouse.
Change ``TABLE`` and ``KEPT`` here.

The idea: a deletion that cannot be undone is shown first. The question contains the numbers of
snapshots and of changelogs that a dry run found. The larger number is the limit: "Approve" deletes
no more snapshots than that, and no more changelogs, even if you approve hours later. "Reject", or
no answer within a day, deletes nothing. Everything that a tag, a branch or a consumer needs is
kept.

``expire`` has no retries, because a retry could delete as many snapshots again. If it fails, do not
clear it alone, but trigger another run of the DAG, which asks again.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG

from airflow_provider_lake.operators.expire_snapshots import LakeExpireSnapshotsOperator

TABLE = "shop.orders"
KEPT = {"retain_max": 10, "retain_min": 1, "older_than": "1 d"}
COUNTED = """\
{%- set found = ti.xcom_pull(task_ids="dry_run") -%}
{%- set report = found["report"] -%}
{%- set cut = report.get("left_out", {}) -%}
{%- set snapshots = report["snapshots"] | length + cut.get("snapshots", 0) -%}
{%- set changelogs = report["changelogs"] | length + cut.get("changelogs", 0) -%}
"""
QUESTION = (
    COUNTED
    + """
- Snapshots that would expire: **{{ snapshots }}**
{%- if changelogs %}
- Changelogs that would expire: **{{ changelogs }}**{% endif %}
- Files that would be deleted with them, for good: \
**{{ report["files"].values() | sum }}**, {{ report["bytes"] | filesizeformat(binary=True) }}
- Oldest kept: snapshot {{ report["earliest_snapshot"] }}. Reason: {{ report["reason"] }}.
{%- for each in report["stalled_consumers"] %}
- Consumer {{ each["id"] }} keeps snapshots from expiring.{% endfor %}

**Approve** deletes these snapshots{% if changelogs %}, changelogs{% endif %} and files. \
**Reject**, or no answer within a day, deletes nothing."""
)

with DAG(
    dag_id="expire_with_approval",
    schedule="@weekly",
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    doc_md=__doc__,
    tags=["lake"],
):
    dry_run = LakeExpireSnapshotsOperator(
        task_id="dry_run", table=TABLE, dry_run=True, skip_if_noop=True, **KEPT
    )
    approve = ApprovalOperator(
        task_id="approve",
        subject=f"Expire snapshots of {TABLE}?",
        body=QUESTION,
        response_timeout=timedelta(days=1),
        retries=0,
    )
    expire = LakeExpireSnapshotsOperator(
        task_id="expire",
        table=TABLE,
        limit=COUNTED + "{{ [snapshots, changelogs, 1] | max }}",
        retries=0,  # a retry may delete as many snapshots again
        **KEPT,
    )
    dry_run >> approve >> expire
