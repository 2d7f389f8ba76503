# SPDX-License-Identifier: Apache-2.0
"""The health of an Iceberg table: numbers from its manifests, a score, and reasons with advice."""

from __future__ import annotations

from lakeformat.iceberg.health.health import check_health
from lakeformat.iceberg.health.health_report import IcebergHealthReport

__all__ = ["IcebergHealthReport", "check_health"]
