# SPDX-License-Identifier: Apache-2.0
"""Compares the rows that readers of Iceberg see with those of the published files."""
