# SPDX-License-Identifier: Apache-2.0
"""Rows in memory: conditions, pruning, sortable keys; independent of tables."""
