# SPDX-License-Identifier: Apache-2.0
"""The health of a table: numbers, a score, and a verdict with reasons and advice."""

from lakeformat.paimon.health.health import check_health
from lakeformat.paimon.health.health_report import HealthReport

__all__ = ["HealthReport", "check_health"]
