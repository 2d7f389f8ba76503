# SPDX-License-Identifier: Apache-2.0
"""Merging of rows with one key: their order, and the merge engines."""
