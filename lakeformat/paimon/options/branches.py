"""Options by which a table includes the rows of other branches."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CHAIN_TABLE", "READ_THROUGH", "chain_branches", "read_through"]

CHAIN_TABLE = "chain-table.enabled"
_CHAIN = ("scan.fallback-snapshot-branch", "scan.fallback-delta-branch")
_SINGLE = ("scan.fallback-branch", "scan.primary-branch")
READ_THROUGH = (*_SINGLE, *_CHAIN)
"""The options that name a branch whose rows another branch includes."""


def chain_branches(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the branches that a chain table merges; none for a table of its own rows.

    Without both names, Java reads the table like any other.
    """
    names = tuple(options[key] for key in _CHAIN if options.get(key))
    is_chain = options.get(CHAIN_TABLE, "").strip().lower() == "true"
    return names if is_chain and len(names) == len(_CHAIN) else ()


def read_through(options: Mapping[str, str], branch: str) -> str | None:
    """Return the option by which a branch shows rows of other branches; None if it has none."""
    chained = chain_branches(options)
    if chained:
        apart = {name.lower() for name in chained}
        return None if branch.lower() in apart else CHAIN_TABLE
    return next((key for key in _SINGLE if options.get(key, "").strip()), None)
