# SPDX-License-Identifier: Apache-2.0
"""Reads a Mixed table: the rows of both stores, merged by node."""
