"""How a table fares: what is there, what it costs, and what to do about it."""

from lakeformat.paimon.health.health import check_health
from lakeformat.paimon.health.health_report import HealthReport

__all__ = ["HealthReport", "check_health"]
