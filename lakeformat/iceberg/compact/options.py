# SPDX-License-Identifier: Apache-2.0
"""Checks the options of a compaction, and chooses the strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from lakeformat.errors import InvalidRequestError
from lakeformat.iceberg.refused_arguments import KIND, REFUSED_ARGUMENTS
from lakeformat.rows.conditions.filter import Where
from lakeformat.tables.arguments import Partitions
from lakeformat.tables.refused_arguments import refuse_arguments
from lakeformat.types.closest import closest
from lakeformat.types.type_rules import require_list

__all__ = ["STRATEGIES", "CompactOptions", "CompactSelection", "compact_selection"]

STRATEGIES: Mapping[str, tuple[int, int | None]] = {
    "minor": (5, None),
    "binpack": (5, None),
    "full": (2, 1),
    "sort": (5, None),
    "zorder": (5, None),
}
"""For each strategy the defaults of ``min_input_files`` and ``delete_file_threshold``.

A data file is due for a rewrite if at least ``delete_file_threshold`` delete files apply to it. If
the threshold is None, the number of delete files does not matter.
"""
_ORDERS = {"order": "sort", "zorder": "zorder"}
"""The strategy for each value of ``order_strategy``."""
_MOST_COMMITS = 10
_OF_STRATEGIES: Mapping[str, tuple[str, ...]] = {
    "compression_factor": ("sort", "zorder"),
    "var_length_contribution": ("zorder",),
    "max_output_size": ("zorder",),
}
"""Options that only some strategies have."""
_OF_JAVA: Mapping[str, str] = {
    "options": "write each option as an argument, as in compact(min_input_files=2)",
    "output_spec_id": "rows are written in the current partition spec. Leave the option out",
    "remove_dangling_deletes": "call compact_deletes() (lake compact-deletes) afterwards, which "
    "removes delete files that apply to no data file",
    "use_starting_sequence_number": "new files always keep the starting sequence number, because "
    "equality deletes committed during the compaction must apply to them. Leave the option out",
}
"""Options of Java's ``rewrite_data_files`` that do not exist here, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """The options of a caller; an option that is None has its default."""

    strategy: str | None = None
    """The default is ``minor``, or ``full`` if ``order_by`` is given."""
    order_by: Sequence[str] | None = None
    order_strategy: str | None = None
    target_file_bytes: int | None = None
    min_file_bytes: int | None = None
    max_file_bytes: int | None = None
    max_group_bytes: int | None = None
    min_input_files: int | None = None
    delete_file_threshold: int | None = None
    delete_ratio_threshold: float = 0.3
    rewrite_all: bool = False
    compression_factor: float | None = None
    """The expected size of the sorted files, divided by the size of the files that they replace; by
    default 1.
    """
    var_length_contribution: int | None = None
    """The number of bytes of a string that a Z-order curve uses; by default 8."""
    max_output_size: int | None = None
    """The number of bytes of a Z-order value that are compared; by default all bytes."""
    partial_progress: bool = False
    max_commits: int | None = None
    """The largest number of commits with partial progress, by default 10; conflicts can add more.
    Setting this option turns partial progress on.
    """
    max_concurrent_rewrites: int | None = None
    """The number of groups that threads rewrite at a time; by default the number of cores plus one.
    """
    rewrite_job_order: str = "none"

    @property
    def most_commits(self) -> int | None:
        """The largest number of commits with partial progress; conflicts can add more commits.

        None without partial progress, because then there is a single commit.
        """
        if self.max_commits is None:
            return _MOST_COMMITS if self.partial_progress else None
        return self.max_commits


@dataclass(frozen=True, slots=True)
class CompactSelection:
    """The options of a compaction, and the conditions that choose its files."""

    options: CompactOptions
    where: Where | None = None
    partitions: Partitions | None = None

    @property
    def strategy(self) -> str:
        """The name of the strategy; never None."""
        assert self.options.strategy is not None
        return self.options.strategy


def compact_selection(
    where: Where | None,
    partitions: Partitions | None,
    options: Mapping[str, Any],
    *,
    location: str | None = None,
) -> CompactSelection:
    """Return the checked arguments of a caller.

    Raise ``InvalidRequestError`` for an option that Iceberg tables do not have, or for a wrong
    value. Errors about options of other formats name the table by its ``location``, if it is given.
    """
    known = [each.name for each in fields(CompactOptions)]
    refuse_arguments(REFUSED_ARGUMENTS, "compact", options, kind=KIND, location=location)
    of_paimon = REFUSED_ARGUMENTS["compact"]
    for name in options:
        if (instead := _OF_JAVA.get(name.replace("-", "_"))) is not None:
            raise InvalidRequestError(f"compact has no option {name!r}: {instead}")
        if name not in of_paimon and name not in known:
            raise InvalidRequestError(
                f"compact has no option {name!r}; the options are {', '.join(known)}"
                f"{closest(name, known)}"
            )
    given = {name: value for name, value in options.items() if name not in of_paimon}
    return CompactSelection(_with_strategy(CompactOptions(**given)), where, partitions)


def _with_strategy(options: CompactOptions) -> CompactOptions:
    """Return the checked options with the strategy to use.

    If the strategy is ``full`` and ``order_by`` is given, the strategy becomes ``sort`` or
    ``zorder``, depending on ``order_strategy``, and ``rewrite_all`` becomes True. Raise
    ``InvalidRequestError`` if ``strategy``, ``order_by`` and ``order_strategy`` do not fit
    together.
    """
    by, how, strategy = options.order_by, options.order_strategy, options.strategy
    if strategy is None:
        strategy = "minor" if by is None else "full"
    if strategy not in STRATEGIES:
        raise InvalidRequestError(
            f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}"
        )
    if how is not None and how not in _ORDERS:
        raise InvalidRequestError(
            f"order_strategy of an Iceberg table must be one of {', '.join(_ORDERS)}, got {how!r}"
        )
    is_sorted = strategy in _ORDERS.values()
    if is_sorted and how is not None and _ORDERS[how] != strategy:
        raise InvalidRequestError(
            f"strategy={strategy!r} contradicts order_strategy={how!r}: leave one of them out"
        )
    if by is None:
        if how is not None and not is_sorted:
            raise InvalidRequestError(
                f"order_strategy={how!r} sorts by columns: name them in order_by"
            )
        if strategy == "zorder":
            raise InvalidRequestError("strategy='zorder' sorts by columns: name them in order_by")
        return _checked(replace(options, strategy=strategy))
    named = replace(options, order_by=_order_by(by))
    if is_sorted:
        return _checked(replace(named, strategy=strategy))
    if strategy != "full":
        raise InvalidRequestError(
            "order_by sorts all rows of the chosen partitions, so it cannot be combined with "
            f"strategy={strategy!r}. Use strategy={_ORDERS[how or 'order']!r} to sort only the "
            "files that a compaction rewrites"
        )
    return _checked(replace(named, strategy=_ORDERS[how or "order"], rewrite_all=True))


def _order_by(given: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(given, str):
        require_list("order_by", given, "['id', 'ts desc']")
    keys = (given,) if isinstance(given, str) else tuple(given)
    if not keys:
        raise InvalidRequestError(
            "order_by names no column: give the columns that queries filter by"
        )
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidRequestError(f"order_by names {key!r} twice; name it once")
    return keys


def _checked(options: CompactOptions) -> CompactOptions:
    """Return the options; raise ``InvalidRequestError`` if a value is out of range or does not fit
    the strategy.
    """
    for name in ("max_commits", "max_concurrent_rewrites"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InvalidRequestError(f"{name} must be at least 1, got {value}")
    for name, strategies in _OF_STRATEGIES.items():
        value = getattr(options, name)
        if value is None:
            continue
        if options.strategy not in strategies:
            raise InvalidRequestError(
                f"{name} has an effect only with strategy={' or '.join(map(repr, strategies))}, "
                f"and the strategy is {options.strategy!r}: leave {name} out, or change "
                "the strategy"
            )
        if value <= 0:
            raise InvalidRequestError(f"{name} must be more than 0, got {value}")
    return options
