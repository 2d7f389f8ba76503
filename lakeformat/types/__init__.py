# SPDX-License-Identifier: Apache-2.0
"""Logical types with their text, JSON and Arrow forms, the casts between them, and values
as text.
"""
