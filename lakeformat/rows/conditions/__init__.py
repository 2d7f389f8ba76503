# SPDX-License-Identifier: Apache-2.0
"""Conditions on rows: as the caller writes them, and bound to the columns and types of a table."""
