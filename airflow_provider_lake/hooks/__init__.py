# SPDX-License-Identifier: Apache-2.0
"""Hooks for lakes."""
