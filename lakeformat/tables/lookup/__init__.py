# SPDX-License-Identifier: Apache-2.0
"""Rows of a table by key, for programs that need the same few rows again and again."""
