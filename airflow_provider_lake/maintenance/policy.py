# SPDX-License-Identifier: Apache-2.0
"""Reads ``lake.yaml``, which has the steps and the schedule of each table, and checks all values.

Settings are inherited: those of a table override those of its database, and these override
``defaults``. A step set to ``false`` is left out. No other file is read, so the same file always
gives the same DAGs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from itertools import chain, count
from pathlib import Path
from typing import Any

from airflow_provider_lake.assets.uri import split_table_name

__all__ = [
    "STEPS",
    "Gate",
    "LakePolicy",
    "PolicyError",
    "TablePolicy",
    "check_settings",
    "plain_id",
    "read_policy",
    "read_steps",
]

STEPS: dict[str, tuple[str, ...]] = {
    "publish": (),
    "expire_partitions": (
        "expiration_time",
        "strategy",
        "timestamp_pattern",
        "timestamp_formatter",
        "max_num",
        "dry_run",
    ),
    "compact": ("strategy", "where", "idle", "order_by", "order_strategy", "engine"),
    "expire_snapshots": ("retain_max", "retain_min", "older_than", "limit", "dry_run"),
    "remove_orphans": ("older_than", "max_share", "dry_run"),
    "analyze": ("columns",),
}
"""The steps of maintenance in the order in which they run, each with the arguments that a policy
may set.
"""

_GATE = ("min_files", "max_bytes")
_LEAST = {"pool_slots": 1, "retries": 0}
"""The settings that are numbers, each with its minimum; all other settings are strings."""


class PolicyError(ValueError):
    """A policy is wrong; the message names the table, database or line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The fewest files for which a compaction runs, and the most bytes that it may read."""

    min_files: int = 1
    max_bytes: int | None = None
    """The most bytes that a compaction may read. A table that needs more is not compacted, and a
    warning is logged. None means no limit.
    """

    def __post_init__(self) -> None:
        _check_number("min_files", 1, self.min_files)
        if self.max_bytes is not None:
            _check_number("max_bytes", 1, self.max_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicy:
    """The maintenance of one table."""

    table: str
    schedule: str
    steps: Mapping[str, Mapping[str, Any]]
    """The arguments of each step's operator by the name of the step, in the order of ``STEPS``."""
    gate: Gate = field(default_factory=Gate)
    pool: str = "default_pool"
    pool_slots: int = 1
    retries: int = 2
    lake_conn_id: str = "lake_default"

    @property
    def database(self) -> str:
        """The database of the table."""
        return split_table_name(self.table)[0]


@dataclass(frozen=True, slots=True)
class LakePolicy:
    """The policies of all tables in a file, sorted by name."""

    tables: tuple[TablePolicy, ...]

    def by_dag(self) -> dict[str, list[TablePolicy]]:
        """Return the tables of each DAG by DAG id. Each pair of database and schedule has a DAG,
        with an id such as ``lake_shop`` or ``lake_shop__2``.
        """
        found: dict[tuple[str, str], list[TablePolicy]] = {}
        for each in self.tables:
            found.setdefault((each.database, each.schedule), []).append(each)
        names: dict[str, list[TablePolicy]] = {}
        for (database, _), tables in sorted(found.items()):
            base = f"lake_{plain_id(database)}"
            ids = chain([base], (f"{base}__{number}" for number in count(2)))
            names[next(each for each in ids if each not in names)] = tables
        return names


_SETTINGS = tuple(
    name.name for name in fields(TablePolicy) if name.name not in ("table", "steps", "gate")
)
_KNOWN = (*_SETTINGS, *STEPS)


def read_policy(source: str | Path | Mapping[str, Any]) -> LakePolicy:
    """Return the policy in a file or a mapping. Raise ``PolicyError``, which names the table,
    database or line, for a wrong value.
    """
    values = source if isinstance(source, Mapping) else _load(Path(source))
    _refuse_unknown("the policy", values, ("defaults", "databases"))
    defaults = _mapping("defaults", values.get("defaults"))
    databases = _mapping("databases", values.get("databases"))
    if not databases:
        raise PolicyError("the policy has no database: write databases: {shop: {tables: {…}}}")
    tables = (
        table
        for database, of_database in _named("databases", databases)
        for table in _tables(database, defaults, _mapping(database, of_database))
    )
    return LakePolicy(tuple(tables))


def read_steps(table: str, given: object) -> tuple[dict[str, dict[str, Any]], Gate | None]:
    """Return the steps of a table in the order in which they run, and the gate of the compaction.

    The gate is None if the compaction has neither ``min_files`` nor ``max_bytes``. Raises
    ``PolicyError`` for an unknown step or argument, and if no step is left.
    """
    where = f"{table}: steps"
    values = _mapping(where, given)
    _refuse_unknown(where, values, STEPS)
    asked = [step for step in STEPS if values.get(step, False) is not False]
    steps = {step: _merge(table, step, None, values[step]) for step in asked}
    if not steps:
        raise PolicyError(f"{table} has no step: give some of {', '.join(STEPS)}")
    gate = {key: steps["compact"].pop(key) for key in _GATE if key in steps.get("compact", {})}
    return steps, _gate(table, gate) if gate else None


def plain_id(name: str) -> str:
    """Return a name as an id of a DAG or task group. Characters that Airflow does not allow become
    ``_``; at both ends of the name they are removed. If nothing remains, the id is ``table``.
    """
    trimmed = re.sub(r"^[^\w-]+|[^\w-]+$", "", name)
    return re.sub(r"[^\w-]+", "_", trimmed) or "table"


def check_settings(table: str, settings: Mapping[str, Any]) -> None:
    """Raise ``PolicyError`` for a setting of a table that is empty, of a wrong type or below its
    minimum.
    """
    for name, value in settings.items():
        if name in _LEAST:
            _check_number(f"{table}: {name}", _LEAST[name], value)
        elif not isinstance(value, str) or not value.strip():
            raise PolicyError(f"{table}: {name} must be a non-empty string, got {value!r}")


def _check_number(what: str, least: int, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PolicyError(f"{what} must be a whole number from {least} on, got {value!r}")


def _load(path: Path) -> Any:
    import yaml

    if not path.exists():
        raise PolicyError(f"policy file {path.absolute()} does not exist: correct its path")
    try:
        text = path.read_text("utf-8")
        _refuse_repeated(path, yaml.compose(text, Loader=yaml.SafeLoader))
        loaded = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as reason:
        mark = getattr(reason, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        why = getattr(reason, "problem", None) or reason
        raise PolicyError(f"{path} cannot be read as YAML{where}: {why}") from None
    return _mapping(str(path), loaded)


def _refuse_repeated(path: Path, node: Any) -> None:
    """Raise ``PolicyError`` for a name that appears twice in one mapping, because YAML would ignore
    the first.
    """
    lines: dict[str, int] = {}
    for key, value in node.value if node is not None and node.id == "mapping" else ():
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise PolicyError(
                f"{path} has {name!r} in line {lines[name]} and again in line {line}: merge both "
                "entries"
            )
        lines[name] = line
        _refuse_repeated(path, value)


def _tables(
    database: str, defaults: Mapping[str, Any], of_database: Mapping[str, Any]
) -> Iterator[TablePolicy]:
    shared = {key: value for key, value in of_database.items() if key != "tables"}
    tables = _mapping(f"{database}.tables", of_database.get("tables"))
    if not tables:
        raise PolicyError(
            f"the policy names no tables for database {database!r}: name them below the key "
            "'tables', as in tables: {orders: {…}}"
        )
    for table, of_table in _named(f"{database}.tables", tables):
        name = f"{database}.{table}"
        yield _table(name, [defaults, shared, _mapping(name, of_table)])


def _table(name: str, layers: Iterable[Mapping[str, Any]]) -> TablePolicy:
    try:
        split_table_name(name)
    except ValueError as reason:
        why, advice, _ = str(reason).partition(": write ")
        if advice:  # a policy has the names of database and table in two levels
            why += ": write plain names, such as databases: {shop: {tables: {orders: {…}}}}"
        raise PolicyError(why) from None
    merged: dict[str, Any] = {}
    omitted: dict[str, bool] = {}
    for layer in layers:
        _refuse_unknown(name, layer, _KNOWN)
        for key, value in layer.items():
            merged[key] = _merge(name, key, merged.get(key), value)
            omitted[key] = value is False
    settings = {key: merged[key] for key in _SETTINGS if key in merged}
    if "schedule" not in settings:
        raise PolicyError(
            f"{name} has no schedule: set one for the table, for its database, or in defaults"
        )
    steps, gate = read_steps(
        name, {step: merged[step] for step in STEPS if not omitted.get(step, True)}
    )
    check_settings(name, settings)
    return TablePolicy(table=name, steps=steps, gate=gate or Gate(), **settings)


def _gate(name: str, given: dict[str, Any]) -> Gate:
    try:
        if isinstance(given.get("max_bytes"), str):
            given["max_bytes"] = _bytes(given["max_bytes"])
        return Gate(**given)
    except PolicyError as reason:
        raise PolicyError(f"{name}: compact: {reason}") from None


def _bytes(text: str) -> int:
    from lakeformat.types.amounts import parse_size

    try:
        return parse_size(text)
    except ValueError as reason:
        raise PolicyError(
            f"max_bytes must be a number of bytes, or a size such as '10 gb', got {text!r}: "
            f"{reason}"
        ) from None


def _merge(name: str, key: str, before: Any, value: Any) -> Any:
    """Return the arguments of a step: those in ``value`` replace those in ``before``. The values
    ``true`` and ``false`` only switch the step on or off, so they do not change its arguments.

    For a setting that is not a step, return ``value``. Raise ``PolicyError`` for an unknown
    argument.
    """
    if key not in STEPS:
        return value
    given = {} if isinstance(value, bool) else _mapping(f"{name}: {key}", value)
    known = STEPS[key] + (_GATE if key == "compact" else ())
    _refuse_unknown(f"{name}: {key}", given, known)
    return {**(before or {}), **{name: _plain(each) for name, each in given.items()}}


def _plain(value: Any) -> Any:
    """Return a date as text, any other value unchanged: YAML reads an unquoted 2024-01-31 as a
    date, but operators take text.
    """
    return value.isoformat() if isinstance(value, date) else value


def _named(where: str, values: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """Return the entries of a mapping sorted by name. ``where`` names the mapping in errors.

    Raise ``PolicyError`` for a name that is not text: YAML reads an unquoted ``no`` as false and
    ``007`` as seven.
    """
    for name in values:
        if not isinstance(name, str):
            raise PolicyError(f"{where} has the name {name!r}, which is not a string: quote it")
    return sorted(values.items())


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise PolicyError(f"{where} must be a mapping of names to values, got {value!r}")
    return value


def _refuse_unknown(where: str, values: Mapping[str, Any], known: Iterable[str]) -> None:
    names = [*known]
    for key in values:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"the names are {', '.join(names)}"
            raise PolicyError(f"{where} has an unknown name {key!r}: {meant}")
