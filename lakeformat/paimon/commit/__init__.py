# SPDX-License-Identifier: Apache-2.0
"""Commits: each publishes prepared files as a snapshot, exactly once."""
