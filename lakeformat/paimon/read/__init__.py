# SPDX-License-Identifier: Apache-2.0
"""Reads a snapshot: its data files and their rows."""
