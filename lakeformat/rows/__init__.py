# SPDX-License-Identifier: Apache-2.0
"""Rows in memory, of tables of any format: conditions, pruning, sort keys, hashes, temporary
files.
"""
