# SPDX-License-Identifier: Apache-2.0
"""Sort compaction: rows of append tables in an order that lets queries skip files."""
