# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the metadata files of a table."""
