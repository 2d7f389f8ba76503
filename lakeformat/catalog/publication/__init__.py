# SPDX-License-Identifier: Apache-2.0
"""The catalogs of Iceberg tables in which a connection publishes Paimon tables."""
