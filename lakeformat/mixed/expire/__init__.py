# SPDX-License-Identifier: Apache-2.0
"""Expiry of a Mixed table: old snapshots of both stores, and merged changes."""
