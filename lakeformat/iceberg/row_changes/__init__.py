# SPDX-License-Identifier: Apache-2.0
"""Deletes, updates and upserts of single rows: finds the rows, writes and publishes the change."""
