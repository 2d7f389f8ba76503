"""Schema files that are missing or too new, and the advice in errors about a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import Environment
from lakeformat.errors import CorruptTableError, LakeError, UnsupportedError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.changelog_directory import read_changelog
from lakeformat.paimon.metadata.consumer import read_consumer
from lakeformat.paimon.metadata.schema_file import read_schema, schema_ids, table_exists
from lakeformat.paimon.metadata.snapshot_directory import read_snapshot
from lakeformat.paimon.metadata.statistics import read_statistics
from lakeformat.paimon.metadata.tag import read_tag
from lakeformat.storage import MemoryStorage

LAYOUT = TableLayout("t")
PATIENT = Environment(sleep_seconds=lambda seconds: None)


@pytest.fixture
def table(tmp_path) -> lake.Table:
    """A table whose schema changed twice; each schema has a snapshot."""
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("a", "INT")])
    for column in ("b", "c", None):
        table = catalog.table("shop.orders")
        nulls = {name: pa.nulls(1, pa.int32()) for name in table.schema.column_names}
        table.write(pa.table(nulls))
        if column:
            catalog.alter_table("shop.orders", lake.add_column(column, "INT"))
    return table


def lose(table: lake.Table, number: int) -> lake.Table:
    handle = table._handle
    handle.storage.delete(handle.layout.schema(number))
    return table


@pytest.mark.parametrize("number", [0, 1])
def test_a_schema_that_is_missing_among_others_is_named(table, number):
    lose(table, number)
    told = rf"schema-{number} is missing, although schema 2 exists.*restore"
    with pytest.raises(CorruptTableError, match=told):
        lake.open_table(table.location)
    with pytest.raises(CorruptTableError, match=told):
        table.system_table("schemas").scan().to_arrow()


@pytest.mark.parametrize("name", ["rows", "files", "partitions", "manifests"])
def test_without_the_newest_schema_its_columns_are_not_silently_lost(table, name):
    opened = lake.open_table(lose(table, 2).location)
    shown = opened if name == "rows" else opened.system_table(name)
    told = "snapshot 3 of .* committed under schema 2, but the newest schema is 1; restore"
    with pytest.raises(CorruptTableError, match=told):
        shown.scan().to_arrow()
    assert opened.scan(snapshot=2).to_arrow().column_names == ["a", "b"]


def test_a_branch_may_begin_with_a_later_schema(tmp_path):
    storage = MemoryStorage("branch")
    layout = LAYOUT.on_branch("b")
    for number in (3, 4, 6):
        storage.create(layout.schema(number), b"{}")
    with pytest.raises(CorruptTableError, match="schema-5 is missing"):
        schema_ids(storage, layout)
    storage.create(layout.schema(5), b"{}")
    assert schema_ids(storage, layout) == [3, 4, 5, 6]


def test_a_damaged_table_still_exists():
    storage = MemoryStorage("gap")
    storage.create(LAYOUT.schema(1), b"{}")
    assert table_exists(storage, LAYOUT)


def test_a_schema_of_a_newer_version_is_refused_by_name():
    storage = MemoryStorage("newer")
    storage.create(LAYOUT.schema(0), b'{"version": 4, "id": 0}')
    with pytest.raises(UnsupportedError, match=r"schema-0: .*version is 4.*up to 3.*upgrade"):
        read_schema(storage, LAYOUT, 0)


READERS = {
    "snapshot": (LAYOUT.snapshot(1), lambda s: read_snapshot(s, LAYOUT, 1), "move the file out"),
    "schema": (LAYOUT.schema(1), lambda s: read_schema(s, LAYOUT, 1), "without it"),
    "tag": (LAYOUT.tag("v"), lambda s: read_tag(s, LAYOUT, "v"), "create the tag again"),
    "changelog": (
        LAYOUT.changelog(1),
        lambda s: read_changelog(s, LAYOUT, 1),
        "its changes are then lost",
    ),
    "consumer": (
        f"{LAYOUT.consumer_directory}/consumer-me",
        lambda s: read_consumer(s, LAYOUT, "me", PATIENT),
        "delete the file",
    ),
    "statistics": (LAYOUT.statistics("s"), lambda s: read_statistics(s, LAYOUT, "s"), "ANALYZE"),
}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"id": "one", "nextSnapshot": "two"}'])
@pytest.mark.parametrize("kind", READERS)
def test_the_advice_mends_what_is_broken(kind, content):
    path, read, advice = READERS[kind]
    storage = MemoryStorage("advice")
    storage.overwrite(path, content)
    with pytest.raises(LakeError) as caught:
        read(storage)
    told = str(caught.value)
    assert Path(path).name in told
    assert advice in told
    assert "roll the table back" not in told, "rolling back does not mend it"
