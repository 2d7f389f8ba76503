"""Dropping the files of a table: what goes is planned, said, and then removed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lakeformat.catalog.leftovers import dropped_sibling, remove_dropped
from lakeformat.catalog.outside import external_paths_of, location_in
from lakeformat.errors import (
    CommitConflictError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.paimon.layout import REGISTERED_MARK, TableLayout, partition_directory
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids
from lakeformat.storage import NO_ROOTS, ExternalRoots, FileInfo, Storage
from lakeformat.storage.links import is_link
from lakeformat.storage.location import location_of
from lakeformat.storage.move_directory import MovesDirectories, mover

__all__ = [
    "SCHEMA_DIRECTORY",
    "DropPlan",
    "plan_drop",
    "refuse_shared_paths",
    "run_drop",
]

_BUCKET = re.compile(r"bucket-(\d+|postpone)")
SCHEMA_DIRECTORY = "schema"


@dataclass(frozen=True, slots=True)
class DropPlan:
    """The directories that are removed with everything in them."""

    table: str
    directory: str
    external_paths: tuple[str, ...]
    """Outside the table; named by one of its schemas, on any branch. Of those only the buckets
    go, where the table puts them: the path may hold anything else."""
    partition_keys: tuple[str, ...] = ()
    data_path: str = ""
    roots: ExternalRoots = field(default=NO_ROOTS, repr=False)
    """The places outside of the table that the caller of the drop allows."""
    identity: str = field(default="", repr=False)
    """Of the table that was seen: one made anew under the same name has another first schema."""

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values."""
        return {
            "table": self.table,
            "directory": self.directory,
            "external_paths": [*self.external_paths],
        }


def plan_drop(storage: Storage, layout: TableLayout, table: str, roots: ExternalRoots) -> DropPlan:
    """Return what dropping a table removes.

    External paths that no caller allows (``roots``), or that hold more than the table, are refused.
    Of a table that is a link the link alone is removed.
    """
    if is_link(storage, layout.root):
        return DropPlan(table, storage.uri(layout.root), (), identity=_identity(storage, layout))
    paths = external_paths_of(storage, layout)
    mine = location_in(storage, layout.root)
    for address in paths:
        if roots.require(address, f"table {table!r}").real().holds(mine):
            raise InvalidRequestError(
                f"{table} names the external path {address}, which its own directory lies in: "
                "dropping the table would remove more than the table; remove its files by hand"
            )
    plan = DropPlan(table, storage.uri(layout.root), tuple(paths), roots=roots)
    if known := schema_ids(storage, layout):
        plan = replace(plan, identity=_identity(storage, layout))
    if known and paths:
        schema = read_schema(storage, layout, known[-1])
        plan = replace(
            plan,
            partition_keys=tuple(schema.partition_keys),
            data_path=schema.table_options.data_file_path_directory,
        )
    _outside(storage, plan)  # refuses directories of other tables
    return plan


def refuse_shared_paths(plan: DropPlan, others: Iterable[tuple[str, Storage, TableLayout]]) -> None:
    """Another table's files in the same external path would go with this one's."""
    mine = [location_of(path).real() for path in plan.external_paths]
    for name, place, layout in others:
        for path in external_paths_of(place, layout):
            theirs = location_of(path).real()
            if any(theirs.overlaps(own) for own in mine):
                raise InvalidRequestError(
                    f"'{plan.table}' and '{name}' both keep files in the external path {path}: "
                    "dropping one would remove the other's; remove the files by hand"
                )


def run_drop(storage: Storage, layout: TableLayout, plan: DropPlan) -> None:
    """Remove what the plan says; repeated after a crash, it removes the rest.

    Where directories move, the table's own is hidden first: nobody meets half of it. Elsewhere the
    schemas go last: as long as something is there, they say what it belongs to.
    """
    for place, root in _outside(storage, plan):
        for bucket in _buckets_below(place, root, plan.partition_keys):
            place.delete_directory(bucket)
    at_once = mover(storage)
    if at_once is not None:
        hidden = _hide(storage, at_once, layout, plan)
        _remove_hidden(storage, layout.root.rpartition("/")[0], hidden, plan)
        return
    for info in storage.list(layout.root):
        if info.name != SCHEMA_DIRECTORY:
            remove = storage.delete_directory if info.is_directory else storage.delete
            remove(info.path)
    storage.delete_directory(layout.root)


def _hide(
    storage: Storage, at_once: MovesDirectories, layout: TableLayout, plan: DropPlan
) -> str | None:
    """Where the table is now; None if an earlier try has hidden it."""
    hidden = dropped_sibling(layout.root)
    try:
        at_once.rename_directory(layout.root, hidden)
    except NotFoundError:
        return None  # an earlier try has come so far
    if plan.identity and _identity(storage, TableLayout(hidden)) != plan.identity:
        at_once.rename_directory(hidden, layout.root)
        raise CommitConflictError(
            f"table '{plan.table}' was made anew by another program while it was dropped: the new "
            "one stays; look at it and drop it again"
        )
    return hidden


def _remove_hidden(storage: Storage, directory: str, hidden: str | None, plan: DropPlan) -> None:
    """Its files, and then what others left: those that would not go do not keep ours."""
    try:
        if hidden is not None:
            storage.delete_directory(hidden)
        remove_dropped(storage, directory)
    except UnavailableError as error:
        database = plan.table.partition(".")[0]
        raise UnavailableError(
            f"table '{plan.table}' is dropped, but not all files of dropped tables went; "
            f"repair('{database}') removes them once that is possible: {error}"
        ) from error


def _identity(storage: Storage, layout: TableLayout) -> str:
    """Of a table by its first schema, which says when it was made; empty where there is none."""
    known = schema_ids(storage, layout)
    return hashlib.sha256(storage.read(layout.schema(known[0]))).hexdigest() if known else ""


def _outside(storage: Storage, plan: DropPlan) -> list[tuple[Storage, str]]:
    """Return the places outside that partitions lie in; a directory of a table is refused."""
    found, table = [], f"table {plan.table!r}"
    below = [name for name in plan.data_path.split("/") if name]
    for address in plan.external_paths:
        plan.roots.require_no_table(address, storage, table, below)
        place, path = plan.roots.place(address, storage, table)
        if place.exists(f"{path}/{REGISTERED_MARK}"):
            continue  # plain files, which a migration registered: they stay
        root = _joined(path, *below)
        for info in _next_below(place, root, plan.partition_keys):
            plan.roots.require_no_table(address, storage, table, (*below, info.name))
        found.append((place, root))
    return found


def _buckets_below(
    storage: Storage, directory: str, partition_keys: Sequence[str]
) -> Iterator[str]:
    """The bucket directories a table has below a directory, partition by partition."""
    for info in _next_below(storage, directory, partition_keys):
        if partition_keys:
            yield from _buckets_below(storage, info.path, partition_keys[1:])
        else:
            yield info.path


def _next_below(
    storage: Storage, directory: str, partition_keys: Sequence[str]
) -> Iterator[FileInfo]:
    """The directories of the next partition key, or after the last one of buckets."""
    start = partition_directory([(partition_keys[0], "")]) if partition_keys else ""
    for info in storage.list(directory):
        is_next = info.name.startswith(start) if start else _BUCKET.fullmatch(info.name)
        if info.is_directory and is_next:
            yield info


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
