# SPDX-License-Identifier: Apache-2.0
"""Branches: histories of snapshots besides main, over the same data files."""
