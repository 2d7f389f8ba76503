# SPDX-License-Identifier: Apache-2.0
"""System tables: the metadata of a table as rows, with the columns of Iceberg's Java library."""
