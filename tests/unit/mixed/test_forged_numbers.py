"""Numbers that are too large in files, summaries and properties end in no error of Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakeformat as lake
from tests.unit.mixed.edited_stores import edit, newest_metadata
from tests.unit.mixed.named_rows import contents, names, new_catalog, new_table

HUGE = "9" * 5000
LARGEST_LONG = str(2**63 - 1)


@pytest.fixture
def table(tmp_path: Path) -> lake.MixedTable:
    made = new_table(new_catalog(tmp_path))
    made.write(names(_1="a", _2="b"))
    made.write(names(_2="c"), overwrite="table")
    made.begin().abort()
    return made


def summaries(store: str, name: str, value: str) -> Callable[[Path], None]:
    def forge(root: Path) -> None:
        snapshots = json.loads(newest_metadata(root / store).read_text())["snapshots"]
        for each in snapshots:
            each["summary"][name] = value
        edit(root / store, snapshots=snapshots)

    return forge


def properties(**of_base: str) -> Callable[[Path], None]:
    return lambda root: edit(
        root / "t", properties={name.replace("_", "."): text for name, text in of_base.items()}
    )


def lease(expires: str) -> Callable[[Path], None]:
    content = f'{{"owner": "x", "expiresMillis": {expires}}}'
    return lambda root: bool((root / "t/_lake/lease/lease-0000000009").write_text(content))


@pytest.mark.parametrize(
    "forge",
    [
        summaries("t_change_", "lake.lease", HUGE),
        summaries("t_change_", "lake.ended-transactions", HUGE),
        summaries("t", "txId", HUGE),
        properties(change_data_ttl_minutes=LARGEST_LONG),
        lease("1e999"),
    ],
)
def test_a_forged_number_stops_no_work(table, tmp_path, forge: Callable[[Path], None]):
    forge(tmp_path / "db")
    table = lake.open_table(str(tmp_path / "db/t"))
    table.compact(strategy="full", executor="serial")
    table.expire_snapshots(older_than="1 s")
    assert table.health().score is not None
    if forge.__qualname__.startswith("lease"):
        # The time of the file counts, as for a file that is being written.
        with pytest.raises(lake.LockUnavailableError):
            table.begin()
    else:
        table.delete("id = 1")
    assert contents(table) == {2: "c"}


@pytest.mark.parametrize("name", ["lake.written-rows", "added-records"])
def test_a_forged_count_is_named_when_a_commit_is_repeated(table, tmp_path, name: str):
    commit = lake.CommitId("job", 1)
    table.write(names(_5="e"), commit=commit)
    summaries("t_change_", name, HUGE)(tmp_path / "db")
    table = lake.open_table(str(tmp_path / "db/t"))
    with pytest.raises(lake.CorruptTableError, match=f"has '{name}' = '9999.*at most 19 digits"):
        table.write(names(_5="e"), commit=commit)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("base.file-index.hash-bucket", HUGE, f"not a whole number up to {2**63 - 1}"),
        ("base.file-index.hash-bucket", str(2**32), "hashes of keys have 31 bits"),
        ("change.file-index.hash-bucket", str(2**62), "hashes of keys have 31 bits"),
    ],
)
def test_a_number_of_buckets_that_is_too_large_is_refused(
    table, tmp_path, name: str, text: str, message: str
):
    """A name of a file with such a node would be none that readers know."""
    edit(tmp_path / "db/t", properties={name: text})
    table = lake.open_table(str(tmp_path / "db/t"))
    how: dict[str, Any] = {"overwrite": "table"} if name.startswith("base") else {}
    with pytest.raises(lake.InvalidRequestError, match=message):
        table.write(names(_3="d"), **how)
    assert contents(table) == {2: "c"}


@pytest.mark.parametrize("position", ["main/1", "dev/1.1"])
def test_a_forged_position_of_a_consumer_names_its_file(table, tmp_path, position: str):
    path = tmp_path / "db/t/_lake/consumer/consumer-mirror"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"position": position}))
    with pytest.raises(lake.CorruptTableError, match="consumer-mirror holds a value"):
        table.consumers.list()
