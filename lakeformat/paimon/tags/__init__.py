# SPDX-License-Identifier: Apache-2.0
"""Tags: named snapshots that do not expire; creates, moves and deletes them with their files."""
