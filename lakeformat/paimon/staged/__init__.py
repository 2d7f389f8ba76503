# SPDX-License-Identifier: Apache-2.0
"""Results that are written by one job and published by another."""

from lakeformat.paimon.staged.table_staged import TableStaged

__all__ = ["TableStaged"]
