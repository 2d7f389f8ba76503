# SPDX-License-Identifier: Apache-2.0
"""The summary key under which a published snapshot stores the identity of its Paimon snapshot."""

from __future__ import annotations

__all__ = ["IDENTITY"]

IDENTITY = "paimon-commit-identity"
"""The key of a snapshot summary that holds the identity of the Paimon snapshot.

After a rollback another snapshot may have the same number; its identity differs.
"""
