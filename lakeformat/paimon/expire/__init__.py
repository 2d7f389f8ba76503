# SPDX-License-Identifier: Apache-2.0
"""Expiry of snapshots, and of changelogs that outlive them, with the files that only they need."""

from __future__ import annotations

from lakeformat.paimon.expire.expire import expire_snapshots
from lakeformat.paimon.expire.expire_report import ExpireReport

__all__ = ["ExpireReport", "expire_snapshots"]
