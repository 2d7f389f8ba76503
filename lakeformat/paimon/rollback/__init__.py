# SPDX-License-Identifier: Apache-2.0
"""Rollback to an earlier state: by a new snapshot, or by deleting newer ones."""
