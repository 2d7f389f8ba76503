# SPDX-License-Identifier: Apache-2.0
"""Upkeep of the manifests of Iceberg tables."""
