# SPDX-License-Identifier: Apache-2.0
"""Triggers, which wait for tables and processes in the triggerer, without a worker slot."""
