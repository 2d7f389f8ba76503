# SPDX-License-Identifier: Apache-2.0
"""Checks of rows: of the newest snapshot, or of staged results before they are published."""
