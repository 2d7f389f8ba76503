# SPDX-License-Identifier: Apache-2.0
"""Deletes of single rows: finds them, writes their positions, and publishes them once."""
