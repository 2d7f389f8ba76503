# SPDX-License-Identifier: Apache-2.0
"""Makes an Iceberg table a Mixed table without a rewrite, and a Mixed table an Iceberg table."""
