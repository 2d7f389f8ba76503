# SPDX-License-Identifier: Apache-2.0
"""Reads rows of files, SQL databases, change messages and other tables, and writes them into a
table.
"""
