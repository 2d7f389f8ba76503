# SPDX-License-Identifier: Apache-2.0
"""The health of a Mixed table: Amoro's score, and reasons with advice."""

from __future__ import annotations

from lakeformat.mixed.health.health import (
    MixedHealthReport,
    check_mixed_health,
    score_of_partitions,
)

__all__ = ["MixedHealthReport", "check_mixed_health", "score_of_partitions"]
