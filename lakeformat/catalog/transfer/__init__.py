# SPDX-License-Identifier: Apache-2.0
"""Copies tables, and makes tables of directories of plain files."""
