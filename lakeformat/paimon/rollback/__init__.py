# SPDX-License-Identifier: Apache-2.0
"""Rolls back to an earlier state: by a new snapshot, or by deleting newer snapshots."""
