# SPDX-License-Identifier: Apache-2.0
"""Compaction of the delete files of Iceberg tables."""
