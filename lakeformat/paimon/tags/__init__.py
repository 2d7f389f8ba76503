# SPDX-License-Identifier: Apache-2.0
"""Tags: named snapshots that do not expire; created, moved, and deleted with their files."""
