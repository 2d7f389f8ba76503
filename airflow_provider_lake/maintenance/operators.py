# SPDX-License-Identifier: Apache-2.0
"""The operator of each step; each is imported when a DAG uses it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["operator_of"]

_OPERATORS = {
    "publish": "LakePublishOperator",
    "expire_partitions": "LakeExpirePartitionsOperator",
    "compact": "LakeCompactOperator",
    "expire_snapshots": "LakeExpireSnapshotsOperator",
    "remove_orphans": "LakeRemoveOrphansOperator",
    "analyze": "LakeAnalyzeOperator",
}


def operator_of(step: str) -> Any:
    """Return the operator class of a step of ``policy.STEPS``."""
    return getattr(import_module(f"airflow_provider_lake.operators.{step}"), _OPERATORS[step])
