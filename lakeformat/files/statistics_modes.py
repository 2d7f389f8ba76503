"""What a table keeps in its manifests about each column of a data file."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import Enum

from lakeformat.paimon.datafile.system_fields import is_system_column
from lakeformat.paimon.options import TableOptions

__all__ = ["Detail", "StatisticsMode", "column_modes"]


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
        """Read a mode as ``TableOptions`` has checked it, such as ``truncate(16)``."""
        plain = {"none": Detail.NONE, "counts": Detail.COUNTS, "full": Detail.BOUNDS}
        if text in plain:
            return cls(plain[text])
        return cls(Detail.BOUNDS, int(text.removeprefix("truncate(").removesuffix(")")))


KEY_MODE = StatisticsMode(Detail.BOUNDS, 128)


def column_modes(
    columns: Sequence[str], options: TableOptions, *, key_columns: Container[str] = ()
) -> list[StatisticsMode]:
    """The mode of each column of a file, in order.

    System columns, and key columns that stand in for theirs, keep what keys are compared by.
    They do not count among the leading columns that have statistics, those set by name do.
    """
    default = StatisticsMode.parse(options.statistics_mode)
    limit, counted = options.statistics_keep_first_n_columns, 0
    modes = []
    for column in columns:
        own = options.of_column(type(options).column_statistics_mode, column)
        if own is not None:
            modes.append(StatisticsMode.parse(own))
        elif is_system_column(column) or column in key_columns:
            modes.append(KEY_MODE)
            continue
        elif 0 <= limit <= counted:
            modes.append(StatisticsMode(Detail.NONE))
        else:
            modes.append(default)
        counted += 1
    return modes
