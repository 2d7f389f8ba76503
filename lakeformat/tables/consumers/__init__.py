# SPDX-License-Identifier: Apache-2.0
"""Consumers: named readers of changes, whose progress is stored in files."""
