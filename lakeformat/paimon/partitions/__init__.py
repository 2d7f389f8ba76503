# SPDX-License-Identifier: Apache-2.0
"""Whole partitions: listed, expired, dropped, or marked as done."""
