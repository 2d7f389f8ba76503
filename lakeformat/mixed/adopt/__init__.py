# SPDX-License-Identifier: Apache-2.0
"""Makes an Iceberg table a Mixed table, or a Mixed table an Iceberg table, without a rewrite."""
