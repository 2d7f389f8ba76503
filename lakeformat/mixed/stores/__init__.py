# SPDX-License-Identifier: Apache-2.0
"""The two Iceberg tables of a Mixed table: how they name each other, and what they record."""
