# SPDX-License-Identifier: Apache-2.0
"""Maintains a table: runs the steps in order, and measures the table before and after."""

from lakeformat.paimon.maintain.maintain import maintain

__all__ = ["maintain"]
