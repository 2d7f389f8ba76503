# SPDX-License-Identifier: Apache-2.0
"""Reads a snapshot: plans its data files, and reads their rows."""
