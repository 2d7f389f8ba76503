# SPDX-License-Identifier: Apache-2.0
"""Maintenance as DAGs: a task group for one table, and DAGs from a policy file."""
