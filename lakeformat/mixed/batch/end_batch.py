# SPDX-License-Identifier: Apache-2.0
"""Ends a running batch from another process: its lease is taken over, so it cannot commit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from lakeformat.errors import LockUnavailableError
from lakeformat.iceberg.write.file_changes import ChangedFiles
from lakeformat.iceberg.write.publish import Base, FileChange, publish_change
from lakeformat.mixed.batch.begin import end_dead_batches
from lakeformat.mixed.batch.lease import leases_of
from lakeformat.mixed.batch.open_batches import (
    leased_batches,
    overwrite_transactions,
    published_transactions,
)
from lakeformat.mixed.stores.optimized_sequences import OPTIMIZED
from lakeformat.mixed.stores.store_pair import StorePair
from lakeformat.tables.lease import StoredLease
from lakeformat.tables.moment import moment_text
from lakeformat.types.count_text import counted

__all__ = ["EndedBatches", "end_batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBatches:
    """The batches that were ended, or that a dry run would end."""

    table: str
    dry_run: bool
    transactions: tuple[int, ...]
    """The transactions of the batches whose commit is refused from now on."""
    published: tuple[int, ...]
    """The transactions of the batches that published their commit before they could be ended."""
    lease: str | None
    """The address of the lease that a batch held when the call began; None if no batch held one."""
    owner: str | None
    expires_millis: int | None
    """The time, in epoch milliseconds, at which the lease would have become stale; None without a
    lease.
    """
    reason: str
    """The outcome in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, ready for JSON."""
        return asdict(self)


def end_batch(pair: StorePair, *, dry_run: bool) -> EndedBatches:
    """End all batches of this library on a table, even those that still run.

    The commits of these batches are refused. A dry run only reports the batches.

    The lease is taken over first; an empty commit to each store follows. So if a batch has already
    checked its lease, its commit meets a conflict, checks the lease again, and is refused.

    Raise ``LockUnavailableError`` if another batch begins at the same moment.
    """
    pair.base.pointer.require_writable()
    leases, environment = leases_of(pair), pair.base.environment
    held = leases.newest()
    if held is not None and not held.is_held(environment.now_millis()):
        held = None
    loaded = pair.load()
    open_batches = leased_batches(loaded.change.metadata).keys()
    transactions = sorted(open_batches - overwrite_transactions(loaded.base.metadata))
    place = None if held is None else leases.place(held.number)
    published: set[int] = set()
    if not dry_run:
        if held is not None and not leases.take(
            StoredLease(held.number + 1, environment.new_id(), 0)
        ):
            raise LockUnavailableError(
                f"the lease {place} of {pair.base.uri} was taken over at the same moment, by a new "
                "batch or another `lake end-batch`, so this call ended no batch. See with dry_run "
                "(--dry-run) which batches are open. Repeat the call only if all of them should end"
            )
        end_dead_batches(pair)
        if transactions:
            _stop_overwrites(pair)
            loaded = pair.load()
            published = published_transactions(loaded.base.metadata, loaded.change.metadata)
    came_first = sorted(published.intersection(transactions))
    transactions = sorted({*transactions}.difference(published))
    return EndedBatches(
        table=pair.base.uri,
        dry_run=dry_run,
        transactions=tuple(transactions),
        published=tuple(came_first),
        lease=place,
        owner=None if held is None else held.owner,
        expires_millis=None if held is None else held.expires_millis,
        reason=_reason(transactions, came_first, place, held, dry_run=dry_run),
    )


def _stop_overwrites(pair: StorePair) -> None:
    """Make an empty commit to the base store, so that a prepared overwrite meets a conflict."""

    def change(base: Base) -> FileChange | None:
        empty = ChangedFiles(is_recorded=True)(base)
        return None if empty is None else replace(empty, operation="append", more=OPTIMIZED)

    publish_change(pair.base, change, commit=None)


def _reason(
    transactions: list[int],
    published: list[int],
    place: str | None,
    held: StoredLease | None,
    *,
    dry_run: bool,
) -> str:
    first = "the batch with transaction {} had published its commit"
    if len(published) > 1:
        first = "the batches with transactions {} had published their commits"
    first = first.format(", ".join(map(str, published)))
    if not transactions and (held is None or published):
        return first if published else "no batch runs, so there is none to end"
    lease = ""
    if held is not None:
        until = moment_text(held.expires_millis)
        lease = f"the lease {place} (owner {held.owner!r}, valid until {until})"
    if not transactions:
        ended = "would end" if dry_run else "ended"
        return f"{ended} {lease}, under which no batch has begun"
    numbers = ", ".join(map(str, transactions))
    batch, word = "the batch", "transaction"
    if len(transactions) > 1:
        batch, word = "these batches", "transactions"
    what = f"{counted(len(transactions), 'batch', 'batches')} with {word} {numbers}"
    if lease:
        what += f", and {lease}"
    if dry_run:
        return f"would end {what}"
    refused = f"ended {what}: a later commit of {batch} is refused"
    return f"{refused}; {first} before" if published else refused
