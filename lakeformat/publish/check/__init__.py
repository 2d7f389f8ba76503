# SPDX-License-Identifier: Apache-2.0
"""Checks that Iceberg readers return the rows of the published files."""
