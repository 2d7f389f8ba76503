"""A Mixed table in a REST service or a SQL catalog keeps its rows from creation to drop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from tests.iceberg_rest_server import rest_server

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("name", pa.string())])
COMMIT = lake.CommitId("life", 0)
ONE_NODE = ("change.file-index.hash-bucket", "base.file-index.hash-bucket")
EIGHT_DAYS = 8 * 24 * 60 * 60 * 1000


def rows(**names: str) -> pa.Table:
    """Return a row for each name, as ``_1="a"``: the day is even or odd as the id is."""
    ids = [int(each[1:]) for each in names]
    return pa.table([ids, [each % 2 for each in ids], [*names.values()]], schema=COLUMNS)


def contents(table: Any, **how: Any) -> dict[int, str]:
    found = table.scan(["id", "name"], **how).to_arrow().to_pydict()
    assert len({*found["id"]}) == len(found["id"]), found
    return dict(zip(found["id"], found["name"], strict=True))


@dataclass
class Life:
    """The table ``db.t`` of a catalog, beside a dict with the names that it must have by id."""

    catalog: Any
    now: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    name: str = "db.t"
    names: dict[int, str] = field(default_factory=dict)

    @property
    def table(self) -> Any:
        return self.catalog.table(self.name)

    def after(self, change: Callable[[Any], Any], **names: str | None) -> Any:
        """Make a change, and compare the rows; only the given names may differ from before."""
        made = change(self.table)
        self.now += 60_000
        given = {int(each[1:]): name for each, name in names.items()}
        merged = {**self.names, **given}
        self.names = {each: name for each, name in merged.items() if name is not None}
        assert contents(self.table) == self.names
        return made


@pytest.fixture(params=["rest", "sql"])
def life(request: Any, tmp_path: Path) -> Iterator[Life]:
    made = Life(None)
    with rest_server() as server:
        server.warehouse = f"file://{tmp_path}"
        is_rest = request.param == "rest"
        made.catalog = lake.open_catalog(
            str(tmp_path),
            format="iceberg",
            metastore=request.param,
            uri=server.uri if is_rest else f"jdbc:sqlite:{tmp_path}/catalog.db",
            environment=Environment(now_millis=lambda: made.now),
        )
        made.catalog.create_database("db")
        made.catalog.create_table(
            "db.t",
            COLUMNS,
            format="mixed",
            primary_key=["id", "day"],
            partition_by=["day"],
            options=dict.fromkeys(ONE_NODE, "1") | {"self-optimizing.minor.trigger.interval": "0"},
        )
        yield made


def test_a_table_of_a_service_keeps_its_rows_from_creation_to_drop(life):
    life.after(
        lambda t: t.write(rows(_1="a", _2="a", _3="a", _4="a")), _1="a", _2="a", _3="a", _4="a"
    )
    life.after(lambda t: t.write(rows(_1="b", _2=""), kinds=["+U", "-D"]), _1="b", _2=None)
    merge(life, "minor")
    life.after(lambda t: t.write(rows(_4="c", _5="c"), commit=COMMIT), _4="c", _5="c")
    life.after(lambda t: t.write(rows(_4="c", _5="c"), commit=COMMIT))
    state, earlier = str(life.table.position()), dict(life.names)
    merge(life, "full")
    assert contents(life.table, snapshot=state) == earlier
    change_rows_by_batches(life)
    life.after(lambda t: life.catalog.alter_table("db.t", lake.add_column("note", "STRING")))
    assert life.table.change.schema.column_names == ["id", "day", "name", "note"]
    lake.clone_table(life.table, life.catalog, "db.copy")
    life.after(lambda t: life.catalog.table("db.copy").write(rows(_9="z")))
    rename(life, "db.u")
    merge(life, "full")
    expire(life)
    stray = Path(life.table.base.location.removeprefix("file://")) / "data/stray.parquet"
    stray.write_bytes(b"x")
    life.after(lambda t: t.remove_orphans(dry_run=False))
    assert not stray.exists()
    for each in ("db.copy", "db.u"):
        life.catalog.drop_table(each)
    assert life.catalog._metastore.tables("db") == []


def merge(life: Life, strategy: str) -> None:
    life.after(lambda t: t.compact(strategy=strategy, executor="serial"))
    assert contents(life.table.base) == life.names


def change_rows_by_batches(life: Life) -> None:
    def beside_a_stream(table: Any) -> None:
        with table.begin() as batch:
            table.write(rows(_1="stream"))
            batch.overwrite(rows(_1="over", _3="over", _7="over"), "partitions")

    life.after(beside_a_stream, _1="stream", _3="over", _5=None, _7="over")
    life.after(lambda t: t.update("id = 3", {"name": "updated"}), _3="updated")
    life.after(lambda t: t.delete("id = 7"), _7=None)


def rename(life: Life, new: str) -> None:
    life.catalog.rename_table(life.name, new)
    life.name = new
    life.after(lambda t: t.write(rows(_6="f")), _6="f")


def expire(life: Life) -> None:
    """Remove merged changes after their time, and their files a time later."""
    life.now += EIGHT_DAYS
    assert life.after(lambda t: t.expire_snapshots()).merged_files > 0
    life.now += EIGHT_DAYS
    planned = life.after(lambda t: t.expire_snapshots(dry_run=True))
    paths = [Path(each.path.removeprefix("file://")) for each in planned.removals]
    assert [each for each in paths if each.suffix == ".parquet"]
    life.after(lambda t: t.expire_snapshots())
    assert not [each for each in paths if each.exists()]
