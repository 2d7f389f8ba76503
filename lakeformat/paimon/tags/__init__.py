# SPDX-License-Identifier: Apache-2.0
"""Creates, moves and deletes tags, which keep snapshots with their files."""
