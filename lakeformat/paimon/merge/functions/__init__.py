# SPDX-License-Identifier: Apache-2.0
"""Aggregate functions: each combines the values of one column and one key to one value."""
