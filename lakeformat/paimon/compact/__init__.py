# SPDX-License-Identifier: Apache-2.0
"""Compaction: fewer and larger files with the same rows."""
