# SPDX-License-Identifier: Apache-2.0
"""Commits to Iceberg tables: each publishes changed table metadata."""
