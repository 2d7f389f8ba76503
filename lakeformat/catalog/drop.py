"""Dropping the files of a table: what goes is planned, said, and then removed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lakeformat.catalog.leftovers import dropped_sibling, remove_dropped
from lakeformat.errors import (
    CommitConflictError,
    InvalidRequestError,
    LakeError,
    NotFoundError,
    UnavailableError,
)
from lakeformat.layout import TableLayout, partition_directory
from lakeformat.metadata.branch_directory import branches
from lakeformat.metadata.schema_file import read_schema, schema_ids
from lakeformat.storage import Storage, resolve
from lakeformat.storage.move_directory import MovesDirectories, mover

__all__ = [
    "SCHEMA_DIRECTORY",
    "DropPlan",
    "plan_drop",
    "refuse_shared_paths",
    "run_drop",
    "without_alias",
]

_BUCKET = re.compile(r"bucket-(\d+|postpone)")
_ALIASES = re.compile(r"^s3[an]://")
_EXTERNAL_PATHS = "data-file.external-paths"
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
    identity: str = field(default="", repr=False)
    """Of the table that was seen: one made anew under the same name has another first schema."""

    def to_dict(self) -> dict[str, object]:
        """The plan as plain values."""
        return {
            "table": self.table,
            "directory": self.directory,
            "external_paths": [*self.external_paths],
        }


def plan_drop(storage: Storage, layout: TableLayout, table: str) -> DropPlan:
    """What dropping a table removes; refuses external paths that hold more than the table."""
    paths = _external_roots(storage, layout)
    for address in paths:
        place, path = resolve(address, storage)
        same = place.scheme == storage.scheme and place.uri("x") == storage.uri("x")
        if same and f"{layout.root}/".startswith(f"{path.rstrip('/')}/"):
            raise InvalidRequestError(
                f"{table} names the external path {address}, which its own directory lies in: "
                "dropping the table would remove more than the table; remove its files by hand"
            )
    plan = DropPlan(table, storage.uri(layout.root), tuple(paths))
    known = schema_ids(storage, layout)
    if not known:
        return plan
    plan = replace(plan, identity=_identity(storage, layout))
    if not paths:
        return plan
    schema = read_schema(storage, layout, known[-1])
    return replace(
        plan,
        partition_keys=tuple(schema.partition_keys),
        data_path=schema.table_options.data_file_path_directory,
    )


def refuse_shared_paths(
    storage: Storage, plan: DropPlan, others: Iterable[tuple[str, Storage, TableLayout]]
) -> None:
    """Another table's files in the same external path would go with this one's."""
    mine = [_same_place(storage, path) for path in plan.external_paths]
    for name, place, layout in others:
        for path in _external_roots(place, layout):
            theirs = _same_place(place, path)
            if any(theirs.startswith(own) or own.startswith(theirs) for own in mine):
                raise InvalidRequestError(
                    f"'{plan.table}' and '{name}' both keep files in the external path {path}: "
                    "dropping one would remove the other's; remove the files by hand"
                )


def run_drop(storage: Storage, layout: TableLayout, plan: DropPlan) -> None:
    """Remove what the plan says; repeated after a crash, it removes the rest.

    Where directories move, the table's own is hidden first: nobody meets half of it. Elsewhere the
    schemas go last: as long as something is there, they say what it belongs to.
    """
    for address in plan.external_paths:
        place, path = resolve(address, storage)
        for bucket in _buckets_below(place, _joined(path, plan.data_path), plan.partition_keys):
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


def _buckets_below(
    storage: Storage, directory: str, partition_keys: Sequence[str]
) -> Iterator[str]:
    """The bucket directories a table has below a directory, partition by partition."""
    for info in storage.list(directory):
        if not info.is_directory:
            continue
        if not partition_keys:
            if _BUCKET.fullmatch(info.name):
                yield info.path
        elif info.name.startswith(f"{partition_directory([(partition_keys[0], '')])}"):
            yield from _buckets_below(storage, info.path, partition_keys[1:])


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _same_place(storage: Storage, address: str) -> str:
    """An address as every spelling of it ends up, for comparisons."""
    place, path = resolve(address, storage)
    return without_alias(place.uri(path)).rstrip("/") + "/"


def without_alias(uri: str) -> str:
    """An address whose scheme has several names, under one of them."""
    return _ALIASES.sub("s3://", uri)


def _external_roots(storage: Storage, layout: TableLayout) -> list[str]:
    """The external paths named in any schema of any branch."""
    found: dict[str, None] = {}
    for branch in (layout, *_other_branches(storage, layout)):
        for schema_id in schema_ids(storage, branch):
            options = _options(storage, branch, schema_id)
            for address in options.get(_EXTERNAL_PATHS, "").split(","):
                if address.strip():
                    found[address.strip()] = None
    return [*found]


def _other_branches(storage: Storage, layout: TableLayout) -> Iterator[TableLayout]:
    for branch in branches(storage, layout):
        yield layout.on_branch(branch.name)


def _options(storage: Storage, layout: TableLayout, schema_id: int) -> dict[str, str]:
    try:
        return dict(read_schema(storage, layout, schema_id).options)
    except UnavailableError:
        raise
    except LakeError as error:
        raise type(error)(
            f"{error} (it may name files outside the table, which dropping it would leave behind)"
        ) from error
