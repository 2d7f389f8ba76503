# SPDX-License-Identifier: Apache-2.0
"""Upkeep of the delete files of Iceberg tables."""
