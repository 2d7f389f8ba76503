"""Broken tables of a database: each is named with advice, and the rest is maintained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.crashed_writer import crashed_table
from tests.hostile import Ground
from tests.lake_command import lake_says

COMMANDS = {"health": "health shop", "dry run": "maintain shop --dry-run", "run": "maintain shop"}


def schema_cut_off(root: Path) -> None:
    (root / "schema/schema-0").write_text('{"id": 0, "fie')


def schema_of_bytes(root: Path) -> None:
    (root / "schema/schema-0").write_bytes(b"\xff\xfe\x00")


def snapshot_cut_off(root: Path) -> None:
    path = root / "snapshot/snapshot-2"
    path.write_text(path.read_text()[:60])


def no_manifest_list(root: Path) -> None:
    for path in root.glob("manifest/manifest-list-*"):
        path.unlink()


def option(key: str, value: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / "schema/schema-0"
        schema = json.loads(path.read_text())
        path.write_text(json.dumps({**schema, "options": {**schema["options"], key: value}}))

    return change


DAMAGES: dict[str, Callable[[Path], None]] = {
    "schema_cut_off": schema_cut_off,
    "schema_of_bytes": schema_of_bytes,
    "snapshot_cut_off": snapshot_cut_off,
    "no_manifest_list": no_manifest_list,
}
VALUES = {
    "bucket": "many",
    "consumer.expiration-time": "never",
    "num-sorted-run.compaction-trigger": "x",
    "snapshot.num-retained.min": "few",
    "snapshot.time-retained": "soon",
    "target-file-size": "huge",
    "write-only": "perhaps",
}


def made(catalog: lake.Catalog, name: str, break_it: Callable[[Path], None]) -> lake.Table:
    table = catalog.create_table(f"shop.{name}", [("id", "BIGINT")])
    for number in range(2):
        table.write(pa.table({"id": [number]}))
    break_it(Path(table.location.removeprefix("file://")))
    return table


@pytest.mark.parametrize("command", COMMANDS)
def test_damaged_tables_of_a_database_are_named_and_stop_no_other(catalog, command):
    for name, damage in DAMAGES.items():
        made(catalog, name, damage)
    made(catalog, "zz_last", lambda root: None)
    crashed_table(catalog, commits=6, consumer=None)
    shown = lake_says(catalog, *COMMANDS[command].split(), code=1, width=400)
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith("shop.")}
    for name in DAMAGES:
        assert "CorruptTableError: " in lines[f"shop.{name}"]
        assert f"/shop.db/{name}/" in lines[f"shop.{name}"]
        file = "schema file" if name.startswith("schema") else "file"
        assert f"restore the {file} from a backup" in lines[f"shop.{name}"]
    assert "healthy" in lines["shop.zz_last"]
    is_healed = str(catalog.table("shop.orders").health().verdict) == "healthy"
    assert is_healed == (command == "run")


@pytest.mark.parametrize("key", VALUES)
def test_health_shows_what_it_can_beside_an_option_that_cannot_be_read(catalog, key):
    table = made(catalog, "orders", option(key, VALUES[key]))
    report = catalog.table("shop.orders").health(unknown=True)
    assert (report.files.files, report.snapshots.count) == (2, 2)
    assert str(report.verdict) in ("degraded", "unhealthy")
    [reason] = report.reasons
    assert reason.finding.startswith(f"option {key!r} is {VALUES[key]!r}, but must be ")
    assert reason.advice.startswith(
        f"lake set-option shop.orders {key}=VALUE, or, for the default, "
    )
    assert report.first_step == reason.advice
    assert table.latest_snapshot() is not None


def test_an_empty_table_with_such_an_option_is_not_called_empty(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    option("write-only", "perhaps")(Path(table.location.removeprefix("file://")))
    report = catalog.table("shop.orders").health()
    assert (str(report.verdict), len(report.reasons)) == ("unhealthy", 1)


@pytest.mark.parametrize("key", VALUES)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_maintenance_names_such_an_option_once_with_the_command_that_mends_it(
    catalog, key, dry_run
):
    made(catalog, "orders", option(key, VALUES[key]))
    report = catalog.table("shop.orders").maintain(dry_run=dry_run)
    [obstacle] = report.obstacles
    assert f"option {key!r} is {VALUES[key]!r}, but must be " in obstacle.finding
    assert obstacle.advice.startswith(f"lake set-option shop.orders {key}=VALUE")
    assert report.failed == ()


def test_a_contradiction_names_the_options_to_set(catalog):
    table = catalog.create_table("shop.orders", [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    root = Path(table.location.removeprefix("file://"))
    option("snapshot.num-retained.min", "20")(root)
    option("snapshot.num-retained.max", "2")(root)
    [obstacle] = catalog.table("shop.orders").maintain().obstacles
    assert obstacle.finding.startswith("expire failed: snapshot.num-retained.min is 20 and")
    assert obstacle.advice == (
        "lake set-option shop.orders snapshot.num-retained.min=VALUE, or "
        "snapshot.num-retained.max=VALUE"
    )


def test_a_refused_table_has_its_reason_once_with_what_to_do(catalog):
    table = crashed_table(catalog, commits=20, consumer=None)
    root = Path(table.location.removeprefix("file://"))
    option("metadata.iceberg.storage", "glue-catalog")(root)
    shown = lake_says(catalog, "maintain", "shop.orders", code=4, width=400)
    assert shown.count("publishes Iceberg metadata") == 1
    assert "compact and expire failed: 'metadata.iceberg.storage' = 'glue-catalog'" in shown
    assert "Use the engine that set it" in shown
    assert "as the message says" not in shown


@pytest.mark.parametrize("unknown", [True, False])
def test_a_file_outside_of_the_table_is_named_with_what_to_do(tmp_path, unknown):
    ground = Ground(tmp_path / "ground")
    ground.name_outside(ground.foreign.as_uri())
    report = ground.table().health(unknown=unknown)
    [reason] = [each for each in report.reasons if each.is_severe]
    assert reason.finding.startswith("reads fail: ")
    assert f"names the external path {ground.foreign.as_uri()}" in reason.finding
    assert "no external root allows" in reason.finding
    assert "external-roots=" in reason.advice
    obstacles = ground.table().maintain().obstacles
    assert [each.finding for each in obstacles if "no external root" in each.finding] == [
        reason.finding
    ]
    assert ground.foreign.exists()


def test_a_file_outside_that_the_caller_allows_is_no_reason(tmp_path):
    catalog = lake.open_catalog(
        str(tmp_path / "wh"), options={"external-roots": str(tmp_path / "out")}
    )
    catalog.create_database("shop")
    options = {
        "data-file.external-paths": (tmp_path / "out").as_uri(),
        "data-file.external-paths.strategy": "round-robin",
    }
    table = catalog.create_table("shop.orders", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": [1]}))
    assert table.health(unknown=True).reasons == ()
    elsewhere = lake.open_catalog(str(tmp_path / "wh")).table("shop.orders")
    assert str(elsewhere.health(unknown=True).verdict) == "unhealthy"


def test_a_column_of_a_type_that_this_version_does_not_know_is_one_obstacle(catalog):
    table = crashed_table(catalog, commits=6, consumer=None)
    path = Path(table.location.removeprefix("file://")) / "schema/schema-0"
    schema = json.loads(path.read_text())
    schema["fields"][1]["type"] = "GEOMETRY(4326)"
    path.write_text(json.dumps(schema))
    report = catalog.table("shop.orders").maintain()
    [obstacle] = report.obstacles
    assert obstacle.finding.startswith("compact failed: ")
    assert "not read or write values of type GEOMETRY" in obstacle.finding
    assert obstacle.advice.startswith("this version cannot do this step")
    assert report.after.dead_files == 0


def test_a_manifest_that_is_gone_is_named_with_the_repair(catalog, monkeypatch):
    def fail(*_, **__):
        raise lake.CorruptTableError("manifest-1 is missing; restore the file from a backup")

    crashed_table(catalog, commits=6, consumer=None)
    monkeypatch.setattr("lakeformat.paimon.maintain.steps.compact", fail)
    [obstacle] = catalog.table("shop.orders").maintain().obstacles
    assert obstacle.finding == "compact failed: manifest-1 is missing"
    assert obstacle.advice == ("restore the file from a backup, then lake maintain shop.orders")
