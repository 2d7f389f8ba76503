# SPDX-License-Identifier: Apache-2.0
"""Reads rows of files, SQL databases, messages and other tables, to write them into a table."""
