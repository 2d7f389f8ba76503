# SPDX-License-Identifier: Apache-2.0
"""Consumers: readers of changes, and their progress in files."""
