# SPDX-License-Identifier: Apache-2.0
"""Restores the rows of an earlier snapshot: by a new snapshot, or by deleting newer snapshots."""
