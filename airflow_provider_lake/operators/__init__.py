# SPDX-License-Identifier: Apache-2.0
"""Operators for lake tables."""
