# SPDX-License-Identifier: Apache-2.0
"""Maintenance as DAGs: a group of steps for one table, and DAGs built from a policy file."""
