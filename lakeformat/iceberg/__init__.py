# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables: this library reads and writes their metadata and files itself."""
