"""Attacks by names in metadata, by staged results, and by links made while a program works."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from lakeformat.paimon.metadata.data_file_meta import DataFileMeta
from lakeformat.paimon.metadata.manifest_list import read_manifest_list
from lakeformat.paimon.metadata.staged_results import staged_results
from tests.hostile import OPERATIONS, SECRET, Ground
from tests.rewriting import rewrite_list

UP = "../../../hr.db/victim"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def victim_manifest(ground: Ground):
    table = ground.catalog().table("hr.victim")
    handle, snapshot = table._handle, table.snapshot(1)
    [found] = read_manifest_list(handle.storage, handle.layout, snapshot.delta_manifest_list)
    return found


def a_manifest_that_leads_up(ground: Ground) -> None:
    theirs = victim_manifest(ground)
    name = f"{UP}/manifest/{theirs.file_name}"
    rewrite_list(ground.write(), [replace(theirs, file_name=name)])


def a_manifest_by_its_path(ground: Ground) -> None:
    theirs = victim_manifest(ground)
    name = f"{ground.victim}/manifest/{theirs.file_name}"
    rewrite_list(ground.write(), [replace(theirs, file_name=name)])


def a_changelog_of_the_victim(ground: Ground) -> None:
    ground.write()
    theirs = json.loads((ground.victim / "snapshot" / "snapshot-1").read_text())
    ground.change_snapshot(changelogManifestList=f"{UP}/manifest/{theirs['deltaManifestList']}")


def an_announced_expiry_of_the_victim(ground: Ground) -> None:
    ground.write()
    ground.write()
    mine = json.loads((ground.hostile / "snapshot" / "snapshot-1").read_text())
    theirs = json.loads((ground.victim / "snapshot" / "snapshot-1").read_text())
    lists = {
        member: f"{UP}/manifest/{theirs[member]}"
        for member in ("baseManifestList", "deltaManifestList")
    }
    intent = {"end": 2, "timeMillis": 1, "keepsChangelogs": False, "snapshots": [{**mine, **lists}]}
    (ground.hostile / "snapshot" / ".expire-2-forged").write_text(json.dumps(intent))


def a_data_directory_by_its_path_in_an_old_schema(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(0, **{"data-file.path-directory": f"file://{ground.victim}"})


def a_host_in_the_address(ground: Ground) -> None:
    ground.name_outside(f"file://localhost{ground.data_file}")


def dots_of_another_alphabet(ground: Ground) -> None:
    below = ground.data_file.relative_to(ground.root)
    ground.change_schema(**{"data-file.external-paths": f"file:{ground.outside}/．．/wh"})
    ground.name_outside(f"file:{ground.outside}/．．/{below}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "attack",
    [
        a_manifest_that_leads_up,
        a_manifest_by_its_path,
        a_changelog_of_the_victim,
        an_announced_expiry_of_the_victim,
        a_data_directory_by_its_path_in_an_old_schema,
        a_host_in_the_address,
        dots_of_another_alphabet,
    ],
    ids=lambda attack: attack.__name__,
)
def test_the_neighbours_are_whole_and_none_of_their_rows_is_shown(ground, attack):
    attack(ground)
    ground.age()
    before, shown, catalog = ground.belongings(), "", ground.catalog(ground.outside)
    for operation in OPERATIONS.values():
        try:
            shown += str(operation(catalog, catalog.table("shop.hostile")))
        except lake.LakeError as refusal:
            shown += str(refusal)
    assert ground.belongings() == before
    assert SECRET not in shown
    assert ground.loot() == []


# ---------------------------------------------------------------- staged results


def leads_up(ground: Ground, file: DataFileMeta) -> DataFileMeta:
    return replace(file, file_name=f"{UP}/bucket-0/{ground.data_file.name}")


def lies_outside(ground: Ground, file: DataFileMeta) -> DataFileMeta:
    return replace(ground.victim_entry().file, external_path=f"file:{ground.data_file}")


def has_a_file_beside(ground: Ground, file: DataFileMeta) -> DataFileMeta:
    return replace(file, extra_files=(f"{UP}/bucket-0/{ground.data_file.name}",))


@pytest.mark.parametrize("forged", [leads_up, lies_outside, has_a_file_beside])
def test_a_forged_staged_result_is_neither_published_nor_discarded(
    ground: Ground, forged: Callable[[Ground, DataFileMeta], DataFileMeta]
) -> None:
    table = ground.table()
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [7], "note": ["mine"]}))
        [message] = writer.prepare()
    message = replace(message, new_files=tuple(forged(ground, each) for each in message.new_files))
    handle = table._handle
    files = staged_results(handle.storage, handle.layout)
    files.write("forged-0", [message], handle.environment)
    address, before = table.staged.address("forged-0"), ground.belongings()
    for attempt in (
        lambda: table.staged.publish([address]),
        lambda: table.staged.discard([address], dry_run=False),
        lambda: table.commit([message]),
        lambda: table.abort([message]),
    ):
        with pytest.raises(lake.LakeError):
            attempt()
    assert ground.belongings() == before
    assert table.latest_snapshot() is None


# ---------------------------------------------------------------- links made meanwhile


def test_a_bucket_that_becomes_a_link_is_not_written_through(ground):
    table = ground.write()
    before = ground.belongings()
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "note": ["x"]}))
        (ground.hostile / "bucket-0").rename(ground.hostile / "old")
        (ground.hostile / "bucket-0").symlink_to(ground.victim / "bucket-0")
        with pytest.raises(lake.InvalidRequestError, match="symbolic link"):
            table.commit(writer.prepare())
    assert ground.belongings() == before


def test_a_data_file_that_becomes_a_link_after_the_plan_is_not_read(ground):
    table = ground.write()
    batches = table.scan().to_batches()
    [mine] = (ground.hostile / "bucket-0").iterdir()
    mine.unlink()
    mine.symlink_to(ground.data_file)
    with pytest.raises(lake.InvalidRequestError, match="symbolic link"):
        list(batches)


def test_a_table_that_becomes_a_link_after_the_plan_of_its_drop_loses_the_link(ground):
    catalog = ground.catalog()
    catalog.plan_drop_table("shop.hostile")
    ground.hostile.rename(ground.root / "away")
    ground.hostile.symlink_to(ground.victim)
    before = ground.belongings()
    catalog.drop_table("shop.hostile")
    assert not ground.hostile.is_symlink()
    assert {name: before[name] for name in before if "/victim/" in name}.items() <= (
        ground.belongings().items()
    )


def test_partitions_named_like_ways_up_lie_below_the_table(ground):
    catalog, before = ground.catalog(), ground.belongings()
    names = ["..", ".", "../../hr.db/victim", "/", "a/../b", "\\.."]
    table = catalog.create_table(
        "shop.p", [("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"]
    )
    for name in names:
        table.write(pa.table({"id": [1], "dt": [name]}))
    table.drop_partitions([{"dt": ".."}])
    table.compact(strategy="full")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert sorted(table.scan().to_arrow()["dt"].to_pylist()) == sorted(names[1:])
    catalog.drop_table("shop.p")
    assert ground.belongings() == before
