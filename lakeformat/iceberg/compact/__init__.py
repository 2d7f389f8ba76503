# SPDX-License-Identifier: Apache-2.0
"""Compaction of Iceberg tables: fewer and larger data files with the same rows."""
