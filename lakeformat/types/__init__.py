# SPDX-License-Identifier: Apache-2.0
"""Logical types: as text, as JSON, in Arrow, under casts; and values as text for people."""
