# SPDX-License-Identifier: Apache-2.0
"""DELETE, UPDATE and UPSERT of rows in Iceberg tables."""
