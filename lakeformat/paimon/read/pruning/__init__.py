# SPDX-License-Identifier: Apache-2.0
"""Pruning: skips files and buckets that cannot have rows meeting the conditions of a scan."""
