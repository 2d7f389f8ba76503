# SPDX-License-Identifier: Apache-2.0
"""Checks the published rows of a table, or staged rows before they are published."""

from lakeformat.tables.row_checks.check_report import CheckReport, CheckResult

__all__ = ["CheckReport", "CheckResult"]
