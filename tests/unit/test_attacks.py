"""A table's metadata never makes an operation read, show or delete what is not the table's.

Each attack prepares a hostile table; then every operation there is runs on it, as a maintenance job
would. Some are refused and some succeed. The neighbours have to be whole afterwards, byte by byte,
and none of their rows may be shown or copied.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakeformat as lake
from tests.hostile import OPERATIONS, SECRET, Ground

PATHS = "data-file.external-paths"
STRATEGY = "data-file.external-paths.strategy"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


# ---------------------------------------------------------------- external paths of data files


def the_address_of_the_victims_file(ground: Ground) -> None:
    ground.name_outside(f"file://{ground.data_file}")


def the_address_as_java_spells_it(ground: Ground) -> None:
    ground.change_schema(**{PATHS: f"file:{ground.victim}"})
    ground.name_outside(f"file:{ground.data_file}")


def a_plain_path(ground: Ground) -> None:
    ground.name_outside(str(ground.data_file))


def a_file_of_no_table(ground: Ground) -> None:
    ground.name_outside(f"file://{ground.foreign}", "foreign.parquet")


def two_dots_behind_an_allowed_root(ground: Ground) -> None:
    ground.change_schema(**{PATHS: f"file:{ground.outside}"})
    below = ground.data_file.relative_to(ground.root)
    ground.name_outside(f"file:{ground.outside}/../{below}")


def two_dots_in_the_option(ground: Ground) -> None:
    ground.change_schema(**{PATHS: f"file:{ground.outside}/../wh/hr.db/victim"})
    ground.name_outside(f"file:{ground.data_file}")


def an_escaped_way_up(ground: Ground) -> None:
    ground.change_schema(**{PATHS: f"file:{ground.outside}"})
    below = ground.data_file.relative_to(ground.root)
    ground.name_outside(f"file:{ground.outside}/%2e%2e/{below}")


def a_directory_that_only_begins_like_an_allowed_one(ground: Ground) -> None:
    there = Path(f"{ground.outside}-of-others") / "bucket-0" / ground.data_file.name
    there.parent.mkdir(parents=True)
    there.write_bytes(ground.data_file.read_bytes())
    ground.change_schema(**{PATHS: f"file:{ground.outside}-of-others"})
    ground.name_outside(f"file:{there}")


def another_file_below_an_allowed_root(ground: Ground) -> None:
    ground.change_schema(**{PATHS: f"file:{ground.outside}"})
    ground.name_outside(f"file:{ground.outside}/bucket-1/../foreign.parquet", "foreign.parquet")


def an_allowed_root_that_the_schema_does_not_name(ground: Ground) -> None:
    there = ground.outside / "theirs" / "bucket-0" / ground.data_file.name
    there.parent.mkdir(parents=True)
    there.write_bytes(ground.data_file.read_bytes())
    ground.change_schema(**{PATHS: f"file:{ground.outside}/mine"})
    ground.name_outside(f"file:{there}")


def another_bucket_below_an_allowed_root(ground: Ground) -> None:
    there = ground.outside / "bucket-7" / ground.data_file.name
    there.parent.mkdir(parents=True)
    there.write_bytes(ground.data_file.read_bytes())
    ground.change_schema(**{PATHS: f"file:{ground.outside}", "bucket": "9", "bucket-key": "id"})
    ground.name_outside(f"file:{there}")


# ---------------------------------------------------------------- names in metadata


def a_file_name_that_leads_up(ground: Ground) -> None:
    name = f"../../../hr.db/victim/bucket-0/{ground.data_file.name}"
    ground.forge(lambda entry: replace(entry, file=replace(entry.file, file_name=name)))


def a_file_name_of_two_dots(ground: Ground) -> None:
    ground.forge(lambda entry: replace(entry, file=replace(entry.file, file_name="..")))


def a_file_beside_that_leads_up(ground: Ground) -> None:
    beside = f"../../../hr.db/victim/bucket-0/{ground.data_file.name}"
    ground.forge(
        lambda entry: replace(
            entry, file=replace(entry.file, extra_files=(beside, f"{beside}.index", ".."))
        )
    )


def an_index_file_outside(ground: Ground) -> None:
    [vectors] = (ground.victim / "index").iterdir()
    ground.index_file(
        lambda entry: replace(entry, file_name=vectors.name, external_path=f"file://{vectors}")
    )


def an_index_file_name_that_leads_up(ground: Ground) -> None:
    [vectors] = (ground.victim / "index").iterdir()
    name = f"../../../hr.db/victim/index/{vectors.name}"
    ground.index_file(lambda entry: replace(entry, file_name=name))


def lists_of_the_victim(ground: Ground) -> None:
    ground.write()
    theirs = json.loads((ground.victim / "snapshot" / "snapshot-1").read_text())
    up = "../../../hr.db/victim/manifest/"
    ground.change_snapshot(
        **{member: up + theirs[member] for member in ("baseManifestList", "deltaManifestList")}
    )


def statistics_and_index_manifest_of_the_victim(ground: Ground) -> None:
    ground.write()
    theirs = json.loads((ground.victim / "snapshot" / "snapshot-2").read_text())
    ground.change_snapshot(
        indexManifest=f"../../../hr.db/victim/manifest/{theirs['indexManifest']}",
        statistics="../../../hr.db/victim/snapshot/snapshot-1",
    )


def a_tag_with_lists_of_the_victim(ground: Ground) -> None:
    table = ground.write()
    table.tags.create("forged")
    theirs = json.loads((ground.victim / "snapshot" / "snapshot-1").read_text())
    path = ground.hostile / "tag" / "tag-forged"
    up = "../../../hr.db/victim/manifest/"
    lists = {m: up + theirs[m] for m in ("baseManifestList", "deltaManifestList")}
    path.write_text(json.dumps({**json.loads(path.read_text()), **lists}))


def a_changelog_with_lists_of_the_victim(ground: Ground) -> None:
    ground.write()
    theirs = json.loads((ground.victim / "snapshot" / "snapshot-1").read_text())
    mine = json.loads((ground.hostile / "snapshot" / "snapshot-1").read_text())
    directory = ground.hostile / "changelog"
    directory.mkdir()
    up = "../../../hr.db/victim/manifest/"
    forged = {**mine, "changelogManifestList": up + theirs["deltaManifestList"]}
    (directory / "changelog-1").write_text(json.dumps(forged))


# ---------------------------------------------------------------- schemas


def an_old_schema_with_its_data_at_the_victims(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(0, **{"data-file.path-directory": "../neighbour"})


def the_newest_schema_with_its_data_at_the_victims(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(1, **{"data-file.path-directory": "../../hr.db/victim"})


def a_branch_with_its_data_at_the_victims(ground: Ground) -> None:
    ground.write().branches.create("dev")
    ground.change_schema(branch="branch/branch-dev", **{"data-file.path-directory": "../neighbour"})


def data_in_the_directory_of_snapshots(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(0, **{"data-file.path-directory": "branch/../../neighbour"})


def the_victims_directory_as_external_path(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(0, **{PATHS: f"file:{ground.victim}", STRATEGY: "round-robin"})


def the_warehouse_as_external_path(ground: Ground) -> None:
    ground.write()
    ground.change_schema(**{PATHS: f"file:{ground.warehouse}", STRATEGY: "round-robin"})


def the_database_as_external_path(ground: Ground) -> None:
    ground.write()
    ground.change_schema(**{PATHS: f"file:{ground.hostile.parent}", STRATEGY: "round-robin"})


def the_victims_directory_as_external_path_of_a_branch(ground: Ground) -> None:
    ground.write().branches.create("dev")
    ground.change_schema(branch="branch/branch-dev", **{PATHS: f"file:{ground.victim}"})


# ---------------------------------------------------------------- links


def replaced(link: Path, target: Path) -> None:
    """Replace a directory or file by a link to its moved content."""
    if link.exists():
        link.rename(link.with_name(f"old {link.name}"))
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def links_to_directories_of_the_victim(ground: Ground) -> None:
    ground.write()
    (ground.hostile / "bucket-7").symlink_to(ground.victim / "bucket-0")
    (ground.hostile / "statistics").symlink_to(ground.victim / "manifest")
    replaced(ground.hostile / "index", ground.victim / "snapshot")


def a_linked_bucket(ground: Ground) -> None:
    theirs = ground.victim_entry().file
    ground.forge(lambda entry: replace(entry, file=theirs))
    replaced(ground.hostile / "bucket-0", ground.victim / "bucket-0")


def a_linked_data_file(ground: Ground) -> None:
    theirs = ground.victim_entry().file
    ground.forge(lambda entry: replace(entry, file=theirs))
    replaced(ground.hostile / "bucket-0" / theirs.file_name, ground.data_file)


def linked_snapshots(ground: Ground) -> None:
    ground.write()
    replaced(ground.hostile / "snapshot", ground.victim / "snapshot")


def linked_metadata(ground: Ground) -> None:
    """Everything but the data: what is written there would be the victim's."""
    ground.write()
    for name in ("snapshot", "manifest", "index"):
        replaced(ground.hostile / name, ground.victim / name)


def a_linked_snapshot_and_manifests(ground: Ground) -> None:
    ground.write()
    replaced(ground.hostile / "snapshot" / "snapshot-1", ground.victim / "snapshot" / "snapshot-1")
    for path in (ground.victim / "manifest").iterdir():
        (ground.hostile / "manifest" / path.name).symlink_to(path)
    replaced(ground.hostile / "bucket-0", ground.victim / "bucket-0")


def linked_schemas(ground: Ground) -> None:
    ground.write()
    replaced(ground.hostile / "schema", ground.victim / "schema")


def a_linked_branch(ground: Ground) -> None:
    ground.write().branches.create("dev")
    replaced(ground.hostile / "branch" / "branch-dev", ground.victim)


def linked_tags_and_consumers(ground: Ground) -> None:
    ground.write()
    for name in ("tag", "consumer", "staged", "stream", "changelog", "branch"):
        replaced(ground.hostile / name, ground.victim / "snapshot")


def a_linked_data_directory(ground: Ground) -> None:
    ground.write()
    ground.add_schema()
    ground.change_schema(0, **{"data-file.path-directory": "data"})
    replaced(ground.hostile / "data", ground.victim)


def a_link_below_an_allowed_root(ground: Ground) -> None:
    ground.name_outside(f"file:{ground.outside}/mine/bucket-0/{ground.data_file.name}")
    ground.change_schema(**{PATHS: f"file:{ground.outside}/mine", STRATEGY: "round-robin"})
    (ground.outside / "mine").symlink_to(ground.victim)


def a_linked_bucket_below_an_allowed_root(ground: Ground) -> None:
    ground.name_outside(f"file:{ground.outside}/mine/bucket-0/{ground.data_file.name}")
    ground.change_schema(**{PATHS: f"file:{ground.outside}/mine", STRATEGY: "round-robin"})
    (ground.outside / "mine").mkdir()
    (ground.outside / "mine" / "bucket-0").symlink_to(ground.victim / "bucket-0")


ATTACKS: list[Callable[[Ground], None]] = [
    the_address_of_the_victims_file,
    the_address_as_java_spells_it,
    a_plain_path,
    a_file_of_no_table,
    two_dots_behind_an_allowed_root,
    two_dots_in_the_option,
    an_escaped_way_up,
    a_directory_that_only_begins_like_an_allowed_one,
    another_file_below_an_allowed_root,
    an_allowed_root_that_the_schema_does_not_name,
    a_file_name_that_leads_up,
    a_file_name_of_two_dots,
    a_file_beside_that_leads_up,
    an_index_file_outside,
    an_index_file_name_that_leads_up,
    lists_of_the_victim,
    statistics_and_index_manifest_of_the_victim,
    a_tag_with_lists_of_the_victim,
    a_changelog_with_lists_of_the_victim,
    an_old_schema_with_its_data_at_the_victims,
    the_newest_schema_with_its_data_at_the_victims,
    a_branch_with_its_data_at_the_victims,
    data_in_the_directory_of_snapshots,
    the_victims_directory_as_external_path,
    the_warehouse_as_external_path,
    the_database_as_external_path,
    the_victims_directory_as_external_path_of_a_branch,
    links_to_directories_of_the_victim,
    a_linked_bucket,
    a_linked_data_file,
    linked_snapshots,
    linked_metadata,
    a_linked_snapshot_and_manifests,
    linked_schemas,
    a_linked_branch,
    linked_tags_and_consumers,
    a_linked_data_directory,
    a_link_below_an_allowed_root,
    a_linked_bucket_below_an_allowed_root,
]


def run(ground: Ground, *operations: str) -> str:
    """Run operations one after the other despite errors; return their output."""
    shown = ""
    catalog = ground.catalog(ground.outside)
    for operation in operations:
        try:
            shown += str(OPERATIONS[operation](catalog, catalog.table("shop.hostile")))
        except lake.LakeError as refusal:
            shown += str(refusal)
    return shown


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "operations",
    [tuple(OPERATIONS), ("truncate", "orphans", "external orphans", "drop"), ("drop",)],
    ids=["everything", "emptied", "dropped"],
)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_the_neighbours_are_whole_and_none_of_their_rows_is_shown(ground, attack, operations):
    attack(ground)
    ground.age()
    before = ground.belongings()
    shown = run(ground, *operations)
    assert ground.belongings() == before
    assert SECRET not in shown
    assert ground.loot() == []


# ---------------------------------------------------------------- words of refusals


def test_a_refusal_names_the_table_the_path_and_the_setting(ground):
    the_address_of_the_victims_file(ground)
    with pytest.raises(lake.InvalidRequestError) as refused:
        ground.table().scan().to_arrow()
    said = str(refused.value)
    assert ground.hostile.as_uri() in said
    assert f"file://{ground.data_file}" in said
    assert f"external-roots=file://{ground.victim}" in said, "with the directory to allow"
    assert f"lake --external-root file://{ground.victim}" in said


def test_a_refusal_of_a_path_the_schema_lacks_says_which_to_add(ground):
    an_allowed_root_that_the_schema_does_not_name(ground)
    with pytest.raises(lake.InvalidRequestError, match=rf"add file://{ground.outside}/theirs to"):
        ground.catalog(ground.outside).table("shop.hostile").scan().to_arrow()


def test_a_file_of_another_bucket_is_refused_below_an_allowed_root_too(ground):
    another_bucket_below_an_allowed_root(ground)
    with pytest.raises(lake.InvalidRequestError, match="but the address should end with"):
        ground.catalog(ground.outside).table("shop.hostile").scan().to_arrow()


def all_roots(ground: Ground) -> lake.Catalog:
    """A catalog of a caller who allows more than he should: the directory of everything."""
    return ground.catalog(ground.root)


def test_a_table_below_an_allowed_root_is_a_neighbour_all_the_same(ground):
    the_address_as_java_spells_it(ground)
    catalog = all_roots(ground)
    before = ground.belongings()
    table = catalog.table("shop.hostile")
    for operation in (
        lambda: table.scan().to_arrow(),
        lambda: OPERATIONS["expire"](catalog, table),
        lambda: table.remove_orphans(dry_run=False, external_paths=True, max_share=1),
        lambda: catalog.drop_table("shop.hostile"),
        lambda: catalog.plan_drop_table("shop.hostile"),
    ):
        with pytest.raises(lake.InvalidRequestError, match="is the directory of another table"):
            operation()
    with pytest.raises(lake.InvalidRequestError, match="is the directory of another table"):
        OPERATIONS["truncate"](catalog, table)
    assert ground.belongings() == before


@pytest.mark.parametrize("below", ["", "bucket-0", "schema"])
def test_no_file_is_written_into_a_neighbour_below_an_allowed_root(ground, below):
    ground.change_schema(**{PATHS: f"file:{ground.victim}/{below}", STRATEGY: "round-robin"})
    table = all_roots(ground).table("shop.hostile")
    before = ground.belongings()
    with pytest.raises(lake.InvalidRequestError, match="is the directory of another table"):
        table.write(pa.table({"id": [1], "note": ["x"]}))
    assert ground.belongings() == before


def test_an_old_schema_that_leads_out_is_named(ground):
    an_old_schema_with_its_data_at_the_victims(ground)
    with pytest.raises(
        lake.InvalidRequestError, match="schema-0 names an invalid place for data files"
    ):
        ground.table().remove_orphans()


def test_a_newest_schema_that_leads_out_is_named_when_the_table_is_opened(ground):
    the_newest_schema_with_its_data_at_the_victims(ground)
    named = r"shop\.db/hostile/schema/schema-1 names an invalid place .*'\.\./\.\./hr\.db/victim'"
    with pytest.raises(lake.InvalidRequestError, match=named):
        ground.table()
    with pytest.raises(lake.InvalidRequestError, match=named):
        lake.open_table(str(ground.hostile))


def test_a_place_that_leads_out_is_named_by_a_drop_with_external_paths(ground):
    ground.write()
    elsewhere = ground.outside / "elsewhere"
    ground.change_schema(**{PATHS: elsewhere.as_uri(), "data-file.path-directory": "../neighbour"})
    with pytest.raises(lake.InvalidRequestError, match="schema-0 names an invalid place"):
        ground.catalog(elsewhere).drop_table("shop.hostile")
    assert ground.hostile.is_dir()


def test_a_refused_link_is_named_with_the_way_out(ground):
    linked_snapshots(ground)
    with pytest.raises(lake.InvalidRequestError) as refused:
        ground.table().scan().to_arrow()
    said = str(refused.value)
    assert f"{ground.hostile}/snapshot: it is a symbolic link" in said
    assert "Replace the link by its target" in said
    assert "external-roots" in said


def test_a_linked_bucket_stops_the_removal_of_orphan_files(ground):
    links_to_directories_of_the_victim(ground)
    with pytest.raises(lake.InvalidRequestError, match=r"hostile/.*: it is a symbolic link"):
        ground.table().remove_orphans(dry_run=False)


def test_a_schema_is_not_altered_through_a_link(ground):
    linked_schemas(ground)
    with pytest.raises(lake.InvalidRequestError, match="schema: it is a symbolic link"):
        ground.catalog().alter_table("shop.hostile", lake.set_option("bucket-key", "id"))
    assert [path.name for path in (ground.victim / "schema").iterdir()] == ["schema-0"]


def test_dropping_a_linked_table_leaves_its_external_files_too(ground):
    catalog = ground.catalog(ground.outside)
    options = {PATHS: f"file:{ground.outside}", STRATEGY: "round-robin"}
    catalog.create_table("hr.far", [("id", "BIGINT")], options=options).write(pa.table({"id": [1]}))
    (ground.warehouse / "shop.db" / "near").symlink_to(ground.warehouse / "hr.db" / "far")
    assert catalog.table("shop.near").scan().count() == 1, "a table may be a link"
    catalog.drop_table("shop.near")
    assert "near" not in catalog.list_tables("shop")
    assert catalog.table("hr.far").scan().count() == 1


def test_a_warehouse_that_is_reached_through_a_link_works(ground):
    (ground.root / "there").symlink_to(ground.warehouse)
    catalog = lake.open_catalog(str(ground.root / "there"))
    table = catalog.table("shop.hostile")
    table.write(pa.table({"id": [1], "note": ["x"]}))
    table.compact(strategy="full")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.remove_orphans(dry_run=False).objection is None
    assert table.scan().count() == 1


# ---------------------------------------------------------------- what a caller hands over


def forged_message(ground: Ground, address: str) -> lake.CommitMessage:
    table = ground.table()
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "note": ["x"]}))
        [message] = writer.prepare()
    file = replace(ground.victim_entry().file, external_path=address)
    return replace(message, new_files=(file,))


def test_a_forged_message_is_neither_committed_nor_given_up(ground):
    message = forged_message(ground, f"file://{ground.data_file}")
    before = ground.belongings()
    for refused in (ground.table().commit, ground.table().abort):
        with pytest.raises(lake.InvalidRequestError, match="no external root allows"):
            refused([lake.CommitMessage.from_bytes(message.to_bytes())])
    assert ground.belongings() == before
    assert ground.table().latest_snapshot() is None


def test_a_forged_staged_result_is_neither_published_nor_discarded(ground):
    message = forged_message(ground, f"file://{ground.data_file}")
    staged = ground.table().staged
    address = staged.address(staged.add([message]).name)
    before = ground.belongings()
    for refused in (staged.publish, staged.discard):
        with pytest.raises(lake.InvalidRequestError, match="no external root allows"):
            refused([address])
    assert len(staged.list()) == 1, "nothing is half done"
    assert ground.belongings() == before


def test_messages_are_given_up_together_or_not_at_all(ground):
    table = ground.table()
    with table.new_writer() as writer:
        writer.write(pa.table({"id": [1], "note": ["x"]}))
        mine = writer.prepare()
    forged = forged_message(ground, f"file://{ground.data_file}")
    there = sorted(ground.hostile.rglob("*.parquet"))
    with pytest.raises(lake.InvalidRequestError, match="no external root allows"):
        table.abort([*mine, forged])
    assert sorted(ground.hostile.rglob("*.parquet")) == there


@pytest.mark.parametrize("name", ["..", "."])
def test_names_of_dots_are_refused(ground, name):
    table = ground.write()
    for make in (
        table.tags.create,
        table.branches.create,
        lambda named: table.consumers.set(named, next_snapshot=1),
    ):
        with pytest.raises(lake.InvalidRequestError, match=r"is not allowed"):
            make(name)
    with pytest.raises(lake.InvalidRequestError):
        ground.catalog().table(f"shop.hostile$branch_{name}")
    with pytest.raises(lake.InvalidRequestError):
        ground.catalog().create_database(name)
    with pytest.raises(lake.InvalidRequestError):
        lake.open_table(str(ground.hostile), branch=name)


# ---------------------------------------------------------------- making and altering


@pytest.mark.parametrize(
    ("below", "says"),
    [
        ("wh/hr.db/victim", "lies in the directory of database 'hr'"),
        ("wh/hr.db/victim/bucket-0", "lies in the directory of database 'hr'"),
        ("wh/hr.db", "lies in the directory of database 'hr'"),
        ("wh/new.db/x", "lies in the directory of database 'new'"),
        ("wh", "holds the warehouse"),
        ("", "holds the warehouse"),
        ("outside/../wh/hr.db", "lies in the directory of database 'hr'"),
    ],
)
def test_an_external_path_where_tables_lie_is_refused(ground, below, says):
    catalog = ground.catalog(ground.root)
    path = f"file:{ground.root}/{below}"
    with pytest.raises(lake.InvalidRequestError, match=says):
        catalog.create_table("shop.new", [("id", "BIGINT")], options={PATHS: path})
    with pytest.raises(lake.InvalidRequestError, match=says):
        catalog.alter_table("shop.hostile", lake.set_option(PATHS, path))
    assert "new" not in catalog.list_tables("shop")
    assert PATHS not in catalog.table("shop.hostile").options.to_dict()


def test_an_external_path_that_leads_to_tables_by_a_link_is_refused(ground):
    (ground.outside / "link").symlink_to(ground.victim)
    catalog = ground.catalog(ground.outside)
    with pytest.raises(lake.InvalidRequestError, match="lies in the directory of database 'hr'"):
        catalog.create_table(
            "shop.new", [("id", "BIGINT")], options={PATHS: f"file:{ground.outside}/link"}
        )


def test_an_external_path_that_no_caller_allows_is_refused(ground):
    path = f"file:{ground.outside}"
    with pytest.raises(lake.InvalidRequestError, match="no external root allows"):
        ground.catalog().create_table("shop.new", [("id", "BIGINT")], options={PATHS: path})
    with pytest.raises(lake.InvalidRequestError, match="no external root allows"):
        ground.catalog().alter_table("shop.hostile", lake.set_option(PATHS, path))


def test_a_directory_below_the_warehouse_where_no_table_lies_may_hold_external_files(ground):
    catalog = ground.catalog(ground.warehouse / "fast")
    options = {PATHS: f"file:{ground.warehouse}/fast", STRATEGY: "round-robin"}
    table = catalog.create_table("shop.new", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": [1]}))
    assert catalog.table("shop.new").scan().count() == 1
    catalog.drop_table("shop.new")
    assert list((ground.warehouse / "fast").rglob("*.parquet")) == []


@pytest.mark.parametrize("root", ["/", "file:///", "", 7])
def test_a_root_that_is_none_is_refused(ground, root):
    with pytest.raises(lake.InvalidRequestError):
        lake.open_table(str(ground.hostile), external_roots=[root])


def test_every_spelling_of_an_allowed_root_allows_it(ground, monkeypatch):
    options = {PATHS: f"file:{ground.outside}", STRATEGY: "round-robin"}
    catalog = ground.catalog(ground.outside)
    table = catalog.create_table("shop.new", [("id", "BIGINT")], options=options)
    table.write(pa.table({"id": [1]}))
    monkeypatch.chdir(ground.root)
    for root in (
        str(ground.outside),
        f"{ground.outside}/",
        f"file:{ground.outside}",
        f"FILE://localhost{ground.outside}",
        f"{ground.outside}/a/../../outside",
        f"file://{ground.root}/%6Futside",
        "outside",
        str(ground.root),
    ):
        assert lake.open_table(table.location, external_roots=[root]).scan().count() == 1, root
