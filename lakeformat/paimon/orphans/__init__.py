# SPDX-License-Identifier: Apache-2.0
"""Removes orphan files, and the entries of missing files, from a table; corrects wrong hints."""
