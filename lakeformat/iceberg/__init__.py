# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables, read from their own metadata."""
