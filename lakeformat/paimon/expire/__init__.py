"""Expiry: snapshots, and changelogs that outlive them, go with the files nobody else needs."""

from __future__ import annotations

from lakeformat.paimon.expire.expire import expire_snapshots
from lakeformat.paimon.expire.expire_report import ExpireReport

__all__ = ["ExpireReport", "expire_snapshots"]
