# SPDX-License-Identifier: Apache-2.0
"""The Iceberg catalogs in which a published table has an entry."""
