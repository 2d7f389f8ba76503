# SPDX-License-Identifier: Apache-2.0
"""Checks rows of a published table, or of staged results before they are published."""

from lakeformat.tables.row_checks.check_report import CheckReport, CheckResult

__all__ = ["CheckReport", "CheckResult"]
