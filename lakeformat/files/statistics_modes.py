"""What a table keeps in its manifests about each column of a data file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Detail", "StatisticsMode"]


class Detail(Enum):
    """How much is kept of a column; what a level keeps, the levels after it keep too."""

    NONE = 0
    COUNTS = 1
    BOUNDS = 2


@dataclass(frozen=True, slots=True)
class StatisticsMode:
    """Of one column; ``length`` is what strings and bytes are cut to, None leaves them whole."""

    detail: Detail
    length: int | None = None

    @classmethod
    def parse(cls, text: str) -> StatisticsMode:
        """Read a mode that the options have checked, such as ``truncate(16)``."""
        plain = {"none": Detail.NONE, "counts": Detail.COUNTS, "full": Detail.BOUNDS}
        if text in plain:
            return cls(plain[text])
        return cls(Detail.BOUNDS, int(text.removeprefix("truncate(").removesuffix(")")))
