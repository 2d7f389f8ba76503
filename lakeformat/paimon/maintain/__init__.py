# SPDX-License-Identifier: Apache-2.0
"""Maintenance of a table: its steps in order, and the table's figures before and after."""

from lakeformat.paimon.maintain.maintain import maintain

__all__ = ["maintain"]
