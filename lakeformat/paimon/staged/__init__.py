# SPDX-License-Identifier: Apache-2.0
"""Staged results: one job writes them, and another job publishes them."""

from lakeformat.paimon.staged.table_staged import TableStaged

__all__ = ["TableStaged"]
