# SPDX-License-Identifier: Apache-2.0
"""Merging of the manifests of Iceberg tables."""
