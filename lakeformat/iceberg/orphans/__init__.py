# SPDX-License-Identifier: Apache-2.0
"""Orphan files: files in a table's directory that no metadata file refers to."""
