# SPDX-License-Identifier: Apache-2.0
"""Checks of rows: of a published table, or of staged results before they are published."""
