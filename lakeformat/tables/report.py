# SPDX-License-Identifier: Apache-2.0
"""The base class of the reports that operations return."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

__all__ = ["Report"]


class Report:
    """The base class of reports, which are dataclasses."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the members as a dict, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]
