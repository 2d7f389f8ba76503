# SPDX-License-Identifier: Apache-2.0
"""Commits: publish prepared files as one snapshot, exactly once."""
