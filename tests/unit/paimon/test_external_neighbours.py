"""An external path leads to no table, even where the allowed root holds tables besides.

The caller of these tests allows too much: the directory that warehouse and external files lie in.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.hostile import OPERATIONS, SECRET, Ground

PATHS = "data-file.external-paths"
STRATEGY = "data-file.external-paths.strategy"
DATA = "data-file.path-directory"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def its_data_directory_is_the_victim(ground: Ground) -> None:
    ground.name_outside(f"file:{ground.data_file}")
    outside = {PATHS: f"file:{ground.victim.parent}", STRATEGY: "round-robin"}
    ground.change_schema(**outside, **{DATA: "victim"})


def its_data_directory_leads_down_to_the_victim(ground: Ground) -> None:
    ground.name_outside(f"file:{ground.data_file}")
    outside = {PATHS: f"file:{ground.warehouse}", STRATEGY: "round-robin"}
    ground.change_schema(**outside, **{DATA: "hr.db/victim"})


def the_data_directory_of_an_old_schema_is_the_victim(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(0, **{DATA: "victim"})
    ground.change_schema(1, **{PATHS: f"file:{ground.victim.parent}", STRATEGY: "round-robin"})


def the_victim_is_named_like_a_bucket(ground: Ground) -> None:
    ground.catalog().rename_table("hr.victim", "hr.bucket-0")
    ground.write()
    ground.change_schema(**{PATHS: f"file:{ground.victim.parent}", STRATEGY: "round-robin"})


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "operations",
    [tuple(OPERATIONS), ("external orphans",), ("truncate", "external orphans"), ("drop",)],
    ids=["everything", "orphans", "emptied", "dropped"],
)
@pytest.mark.parametrize(
    "attack",
    [
        its_data_directory_is_the_victim,
        its_data_directory_leads_down_to_the_victim,
        the_data_directory_of_an_old_schema_is_the_victim,
        the_victim_is_named_like_a_bucket,
    ],
)
def test_the_tables_below_an_allowed_root_are_whole(
    ground: Ground, attack: Callable[[Ground], None], operations: tuple[str, ...]
) -> None:
    attack(ground)
    ground.age()
    before = _tables(ground)
    catalog, shown = ground.catalog(ground.root), ""
    for operation in operations:
        try:
            shown += str(OPERATIONS[operation](catalog, catalog.table("shop.hostile")))
        except lake.LakeError as refusal:
            shown += str(refusal)
    assert _tables(ground) == before
    assert SECRET not in shown
    assert ground.loot() == []


def test_a_table_is_not_dropped_while_its_data_directory_is_another_table(ground):
    its_data_directory_is_the_victim(ground)
    before = ground.belongings()
    with pytest.raises(lake.InvalidRequestError, match=r"victim is the directory of another table"):
        ground.catalog(ground.root).plan_drop_table("shop.hostile")
    with pytest.raises(lake.InvalidRequestError, match=r"victim is the directory of another table"):
        ground.catalog(ground.root).drop_table("shop.hostile")
    assert ground.belongings() == before
    assert ground.hostile.exists(), "nothing is half done"


def test_a_data_directory_at_an_allowed_path_of_its_own_works(ground):
    options = {PATHS: f"file:{ground.outside}", STRATEGY: "round-robin", DATA: "a/b"}
    catalog = ground.catalog(ground.outside)
    table = catalog.create_table("shop.new", [("id", "BIGINT")], options=options)
    for number in range(3):
        table.write(pa.table({"id": [number]}))
    table.compact(strategy="full")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.scan().count() == 3
    assert len([*(ground.outside / "a/b/bucket-0").iterdir()]) == 1
    report = table.remove_orphans(dry_run=False, external_paths=True)
    assert report.orphan_files == 0
    catalog.drop_table("shop.new")
    assert not (ground.outside / "a/b/bucket-0").exists()
    assert ground.foreign.exists()


def _tables(ground: Ground) -> dict[str, bytes]:
    """Everything in directories of other tables."""
    homes = [path.parent.parent for path in ground.warehouse.rglob("schema/schema-0")]
    homes = [home for home in homes if home not in (ground.hostile, ground.hostile.parent / "copy")]
    return {
        name: content
        for name, content in ground.belongings().items()
        if any(Path(name).is_relative_to(home) for home in homes)
    }
