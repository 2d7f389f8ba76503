# SPDX-License-Identifier: Apache-2.0
"""Catalogs of Iceberg tables in which a published table has an entry."""
