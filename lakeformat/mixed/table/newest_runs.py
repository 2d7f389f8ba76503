# SPDX-License-Identifier: Apache-2.0
"""Finds the newest state of a Mixed table, and the times of its newest optimizing runs."""

from __future__ import annotations

from lakeformat.mixed.optimizing.evaluate import LastRuns
from lakeformat.mixed.read.state import MixedState
from lakeformat.mixed.stores.store_pair import LoadedPair, StorePair
from lakeformat.mixed.table.find_state import find_state
from lakeformat.mixed.table.mixed_history import MixedHistory, mixed_history

__all__ = ["last_runs", "newest_runs", "newest_state"]


def last_runs(history: MixedHistory) -> LastRuns:
    """Return when the newest minor run and the newest full run of optimizing ended.

    A commit does not show of which kind its run was. So both are the time of the newest optimizing
    commit of the base store; 0 without such a commit.
    """
    runs = [
        each.time_millis
        for each in history.snapshots
        if each.store == "base" and each.commit_kind == "COMPACT"
    ]
    newest = max(runs, default=0)
    return LastRuns(minor=newest, full=newest)


def newest_runs(pair: StorePair) -> tuple[LoadedPair, MixedState, LastRuns]:
    """Return the newest metadata of both stores, the state of the table, and the times of the
    newest runs.
    """
    loaded, state, history = newest_state(pair)
    return loaded, state, last_runs(history)


def newest_state(pair: StorePair) -> tuple[LoadedPair, MixedState, MixedHistory]:
    """Return the newest metadata of both stores, and the state and the history of the table."""
    loaded = pair.load()
    history = mixed_history(loaded)
    return loaded, find_state(loaded, history), history
