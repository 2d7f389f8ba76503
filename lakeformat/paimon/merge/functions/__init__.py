# SPDX-License-Identifier: Apache-2.0
"""Aggregate functions: each combines the values that one column has in all rows of a key into one
value.
"""
