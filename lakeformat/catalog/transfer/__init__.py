# SPDX-License-Identifier: Apache-2.0
"""Clones tables, and creates tables from directories of plain files."""
