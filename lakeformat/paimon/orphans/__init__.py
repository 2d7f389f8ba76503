# SPDX-License-Identifier: Apache-2.0
"""Removes orphan files and missing files from a table, and corrects wrong hints."""
