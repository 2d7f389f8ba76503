"""Data files outside the table: where they are written, and how the manifest names them."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.environment import SYSTEM
from lakeformat.paimon.datafile.entropy import entropy_directories
from lakeformat.paimon.datafile.external_paths import TablePlace, external_paths
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import ExternalRoots, LocalStorage

ROWS = pa.table({"id": [1, 2]})
STRATEGY = "data-file.external-paths.strategy"


def new_table(tmp_path, *, paths, strategy="round-robin", **options) -> lake.Table:
    # Every writer begins at the first path.
    environment = replace(SYSTEM, random_fraction=lambda: 0.0)
    allowed = ",".join([str(tmp_path), "s3://bucket", "oss://bucket"])
    catalog = lake.open_catalog(
        str(tmp_path / "warehouse"), options={"external-roots": allowed}, environment=environment
    )
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders",
        [("id", "BIGINT")],
        options={"data-file.external-paths": ",".join(paths), STRATEGY: strategy, **options},
    )


def place_of_table(*roots: str) -> TablePlace:
    return TablePlace(LocalStorage(), "file:///wh/shop.db/orders", ExternalRoots.of(roots))


def places_of(table: lake.Table) -> list[str]:
    """Every live file's address as the manifest has it."""
    return table.system_table("files").scan().to_arrow()["file_path"].to_pylist()


def data_files(directory) -> list[str]:
    return [str(path.relative_to(directory)) for path in directory.rglob("*.parquet")]


def test_files_go_to_the_external_path_and_the_manifest_says_so(tmp_path):
    table = new_table(tmp_path, paths=[(tmp_path / "fast").as_uri()])
    table.write(ROWS)
    [file] = (tmp_path / "fast" / "bucket-0").iterdir()
    assert data_files(tmp_path / "warehouse") == []
    assert places_of(table) == [f"file:{file}"], "spelled as Java spells a path"
    assert lake.open_table(table.location, external_roots=[str(tmp_path)]).scan().to_arrow() == ROWS


def test_writers_take_the_paths_in_turn_from_a_random_one_on(tmp_path):
    options = TableOptions(
        {"data-file.external-paths": "file:/a,file:/b/,file:///c", STRATEGY: "round-robin"}
    )
    for fraction, expected in [(0.0, "abca"), (0.4, "bcab"), (0.99, "cabc")]:
        paths = external_paths(
            options, "dt=1/bucket-0", place_of_table("/a", "/b", "/c"), lambda f=fraction: f
        )
        assert paths is not None
        found = [paths.next(f"data-{number}.orc") for number in range(4)]
        addresses = [f"file:/{d}/dt=1/bucket-0/data-{n}.orc" for n, d in enumerate(expected)]
        assert [place.external_path for place in found] == addresses
        assert [f"file:{place.path}" for place in found] == addresses


def test_one_writer_spreads_its_files_over_all_paths(tmp_path):
    paths = [(tmp_path / name).as_uri() for name in ("a", "b")]
    table = new_table(tmp_path, paths=paths, **{"target-file-size": "1 kb"})
    rows = pa.table({"id": range(4 * 128 * 1024)})
    table.write(rows)
    assert Counter(place.split("/")[-3] for place in places_of(table)) == {"a": 2, "b": 2}
    assert table.scan().to_arrow().sort_by("id") == rows


def test_specific_fs_uses_the_paths_of_one_scheme_only(tmp_path):
    table = new_table(
        tmp_path,
        paths=["s3://bucket/warm", (tmp_path / "cold").as_uri()],
        strategy="specific-fs",
        **{"data-file.external-paths.specific-fs": "FILE"},
    )
    table.write(ROWS)
    assert len(data_files(tmp_path / "cold")) == 1


def test_without_a_strategy_files_stay_in_the_table(tmp_path):
    table = new_table(tmp_path, paths=[(tmp_path / "fast").as_uri()], strategy="none")
    table.write(ROWS)
    assert not (tmp_path / "fast").exists()
    assert len(data_files(tmp_path / "warehouse")) == 1


def test_the_data_directory_lies_below_the_external_path_too(tmp_path):
    table = new_table(
        tmp_path, paths=[(tmp_path / "fast").as_uri()], **{"data-file.path-directory": "data/v1"}
    )
    table.write(ROWS)
    [file] = data_files(tmp_path / "fast")
    assert file.startswith("data/v1/bucket-0/data-")


@pytest.mark.parametrize("odd", ["with space", "a%20b", "ü"])
def test_files_are_found_again_whatever_the_path_is_called(tmp_path, odd):
    table = new_table(
        tmp_path, paths=[f"file:{tmp_path}/{odd}/"], **{"data-file.prefix": f"{odd}-"}
    )
    table.write(ROWS)
    assert data_files(tmp_path / "warehouse") == []
    assert len(data_files(tmp_path / odd)) == 1, "taken literally, as Java takes it"
    assert table.scan().to_arrow() == ROWS


def test_a_message_carries_the_place_to_another_process(tmp_path):
    table = new_table(tmp_path, paths=[(tmp_path / "fast").as_uri()])
    with table.new_writer() as writer:
        writer.write(ROWS)
        [message] = writer.prepare()
    table.commit([lake.CommitMessage.from_bytes(message.to_bytes())])
    assert table.scan().to_arrow() == ROWS


def test_a_writer_given_up_leaves_nothing_outside_the_table(tmp_path):
    table = new_table(tmp_path, paths=[(tmp_path / "fast").as_uri()])
    writer = table.new_writer()
    writer.write(ROWS)
    writer.prepare()
    assert len(data_files(tmp_path / "fast")) == 1
    writer.abort()
    assert data_files(tmp_path) == []


def test_a_path_of_a_storage_there_is_none_for_is_refused_before_anything_is_written(tmp_path):
    table = new_table(tmp_path, paths=["oss://bucket/warm"])
    with pytest.raises(lake.UnsupportedError, match="no storage for the scheme 'oss'"):
        table.write(ROWS)


def test_a_strategy_that_leaves_no_path_writes_nothing_into_the_table_instead():
    options = TableOptions(
        {"data-file.external-paths": "s3://b", STRATEGY: "specific-fs"}  # of another writer
    )
    with pytest.raises(lake.InvalidRequestError, match="specific-fs' is not set"):
        external_paths(options, "bucket-0", place_of_table("s3://b"), lambda: 0.0)


@pytest.mark.parametrize("paths", ["relative/path", "/data/fast", "C:/fast", "file:/a,,file:/b"])
def test_an_external_path_is_a_whole_address(tmp_path, paths):
    with pytest.raises(lake.InvalidRequestError, match="does not begin with a scheme"):
        new_table(tmp_path, paths=[paths])


def test_a_strategy_that_does_not_exist_is_refused_by_name(tmp_path):
    with pytest.raises(lake.InvalidRequestError, match=rf"'{STRATEGY}' is 'by-moon'"):
        new_table(tmp_path, paths=["file:/a"], strategy="by-moon")


@pytest.mark.parametrize(
    ("name", "directories"),
    [
        ("hello", "1011/1111/1010/01000111"),  # the hash is 0x248bfa47
        ("hello, world", "1011/1011/1011/01111111"),  # 0x149bbb7f
        ("The quick brown fox jumps over the lazy dog", "1111/1111/0111/00100011"),  # 0x2e4ff723
    ],
)
def test_entropy_is_the_standard_hash_of_the_name(name, directories):
    assert entropy_directories(name) == directories


def test_entropy_puts_directories_between_the_bucket_and_the_file(tmp_path):
    paths = [(tmp_path / name).as_uri() for name in ("a", "b")]
    table = new_table(
        tmp_path, paths=paths, strategy="entropy-inject", **{"target-file-size": "1 kb"}
    )
    rows = pa.table({"id": range(2 * 128 * 1024)})
    table.write(rows)
    files = [path for name in "ab" for path in (tmp_path / name).rglob("*.parquet")]
    assert [path.relative_to(tmp_path).parts[0] for path in files] == ["a", "b"]
    for path in files:
        assert path.parent == tmp_path / path.relative_to(tmp_path).parts[0] / "bucket-0" / (
            entropy_directories(path.name)
        )
    assert table.scan().to_arrow().sort_by("id") == rows


def test_orphans_are_found_in_the_directories_of_entropy(tmp_path):
    table = new_table(tmp_path, paths=[(tmp_path / "fast").as_uri()], strategy="entropy-inject")
    table.write(ROWS)
    with table.new_writer() as writer:
        writer.write(ROWS)
        [message] = writer.prepare()
    [orphan] = [
        path for path in tmp_path.rglob("*.parquet") if path.name == message.new_files[0].file_name
    ]
    five_days_ago = orphan.stat().st_mtime - 5 * 86_400
    os.utime(orphan, (five_days_ago, five_days_ago))
    report = table.remove_orphans(dry_run=False, external_paths=True, older_than="2 d")
    assert (report.removed_files, orphan.exists()) == (1, False)
    assert table.scan().to_arrow() == ROWS


def test_weights_say_how_often_a_path_is_used():
    options = TableOptions(
        {
            "data-file.external-paths": "file:/a,file:/b",
            STRATEGY: "weight-robin",
            "data-file.external-paths.weights": "1, 3",
        }
    )
    chances = iter([0.0, 0.24, 0.25, 0.5, 0.99])
    paths = external_paths(options, "bucket-0", place_of_table("/a", "/b"), lambda: next(chances))
    assert paths is not None
    assert [paths.next("f").path.split("/")[1] for _ in range(5)] == ["a", "a", "b", "b", "b"]


def test_without_weights_all_paths_weigh_the_same(tmp_path):
    paths = [(tmp_path / name).as_uri() for name in ("a", "b")]
    table = new_table(tmp_path, paths=paths, strategy="weight-robin")
    table.write(ROWS)
    assert len(data_files(tmp_path / "a")) == 1


def test_each_path_has_a_weight(tmp_path):
    with pytest.raises(lake.InvalidRequestError, match="has 1 weight for the 2 paths"):
        new_table(
            tmp_path,
            paths=["file:/a", "file:/b"],
            strategy="weight-robin",
            **{"data-file.external-paths.weights": "5"},
        )


@pytest.mark.parametrize("weights", ["0,1", "a,b", "1,,2"])
def test_a_weight_is_a_number_from_one(tmp_path, weights):
    with pytest.raises(lake.InvalidRequestError, match="must be whole numbers from 1"):
        new_table(
            tmp_path,
            paths=["file:/a", "file:/b"],
            strategy="weight-robin",
            **{"data-file.external-paths.weights": weights},
        )
