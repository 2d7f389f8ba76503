# SPDX-License-Identifier: Apache-2.0
"""Pruning: skips what cannot hold rows that meet the conditions of a scan."""
