# SPDX-License-Identifier: Apache-2.0
"""Works on rows of tables of any format: conditions, pruning, sort keys and hashes.

Rows that do not fit into memory are written to temporary files.
"""
