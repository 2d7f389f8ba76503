# SPDX-License-Identifier: Apache-2.0
"""Reports: what an operation did, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

__all__ = ["Report"]


class Report:
    """The base of the frozen dataclasses that operations return."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the members as plain values, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]
