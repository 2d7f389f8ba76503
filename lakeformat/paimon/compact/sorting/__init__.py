# SPDX-License-Identifier: Apache-2.0
"""Sort compaction: writes the rows of append tables in an order that lets queries skip files."""
