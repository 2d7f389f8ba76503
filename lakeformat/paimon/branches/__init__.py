# SPDX-License-Identifier: Apache-2.0
"""Branches: separate histories over the same data files."""
