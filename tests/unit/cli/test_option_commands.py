"""``lake set-option`` and ``lake unset-option``, and errors that name them."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest

import lakeformat as lake
from tests.lake_command import lake_ends, lake_refuses, lake_says

KEEP = "snapshot.num-retained.max"
PATTERN = "partition.timestamp-pattern"


@pytest.fixture
def catalog(tmp_path) -> lake.Catalog:
    catalog = lake.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    catalog.create_table("shop.orders", [("id", "BIGINT"), ("dt", "STRING")], partition_by=["dt"])
    return catalog


def options(catalog: lake.Catalog, name: str = "shop.orders") -> dict[str, str]:
    return dict(catalog.table(name).schema.options)


def test_options_are_set_together_and_unset(catalog):
    shown = lake_says(
        catalog, "set-option", "shop.orders", f"{KEEP}=30", "partition.expiration-time = 7 d"
    )
    assert shown == (
        f"option '{KEEP}' of shop.orders: not set before, '30' now\n"
        "option 'partition.expiration-time' of shop.orders: not set before, '7 d' now\n"
    )
    assert options(catalog) == {KEEP: "30", "partition.expiration-time": "7 d"}
    assert catalog.table("shop.orders").schema.id == 1
    shown = lake_says(catalog, "unset-option", "shop.orders", KEEP)
    assert shown == f"option '{KEEP}' of shop.orders: '30' before, not set now\n"
    assert options(catalog) == {"partition.expiration-time": "7 d"}


def test_a_value_may_hold_an_equals_sign_and_a_program_reads_the_outcome(catalog):
    [said] = json.loads(lake_says(catalog, "set-option", "shop.orders", f"{PATTERN}=a=b", "--json"))
    assert (said["table"], said["schema_id"]) == ("shop.orders", 1)
    assert (said["before"], said["options"]) == ({PATTERN: None}, {PATTERN: "a=b"})
    [said] = json.loads(lake_says(catalog, "unset-option", "shop.orders", PATTERN, "--json"))
    assert (said["before"], said["options"]) == ({PATTERN: "a=b"}, {PATTERN: None})


def test_options_of_a_table_outside_a_warehouse_are_set_by_its_address(catalog, tmp_path):
    """``lake health ADDRESS`` advises such commands."""
    table = catalog.create_table("shop.far", [("id", "BIGINT")])
    table.branches.create("dev")
    address = str(tmp_path / "elsewhere" / "far")
    shutil.copytree(tmp_path / "shop.db" / "far", address)
    shown = lake_says(catalog, "set-option", address, "write-only=true")
    assert shown == f"option 'write-only' of {address}: not set before, 'true' now\n"
    lake_says(catalog, "set-option", f"{address}$branch_dev", f"{KEEP}=5")
    assert dict(lake.open_table(address).schema.options) == {"write-only": "true"}
    assert dict(lake.open_table(address, branch="dev").schema.options) == {KEEP: "5"}
    lake_says(catalog, "unset-option", f"file://{address}", "write-only")
    assert dict(lake.open_table(address).schema.options) == {}
    assert options(catalog, "shop.far") == {}


def test_external_paths_are_not_set_by_an_address(catalog, tmp_path):
    address = str(tmp_path / "shop.db" / "orders")
    said = lake_refuses(catalog, "set-option", address, "data-file.external-paths=file:///tmp/x")
    assert "Open the table by its name 'database.table'" in said
    assert options(catalog) == {}


def test_an_option_of_a_branch_is_its_own(catalog):
    catalog.table("shop.orders").branches.create("dev")
    lake_says(catalog, "set-option", "shop.orders$branch_dev", f"{KEEP}=5")
    assert options(catalog) == {}
    assert options(catalog, "shop.orders$branch_dev") == {KEEP: "5"}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (f"{KEEP}", "has no '=': write KEY=VALUE, such as bucket=4"),
        ("=4", "the option's name is empty"),
        ("snapshot.num-retained.min=many", "many"),
        ("path=/elsewhere", "cannot be changed"),
        (f"{KEEP}=31", f"option '{KEEP}' has two values: name the option once"),
    ],
)
def test_one_wrong_option_changes_none(catalog, wrong, why):
    assert why in lake_refuses(catalog, "set-option", "shop.orders", f"{KEEP}=30", wrong)
    assert options(catalog) == {}


def test_an_option_without_a_name_cannot_be_unset(catalog):
    lake_says(catalog, "set-option", "shop.orders", f"{KEEP}=30")
    said = lake_refuses(catalog, "unset-option", "shop.orders", KEEP, "")
    assert "the option's name is empty: name an option" in said
    assert options(catalog) == {KEEP: "30"}


def test_an_error_says_the_command_that_mends_it(catalog):
    for words, mends in (
        (["partition", "expire"], "set-option shop.orders partition.expiration-time='7 d'"),
        (["tag", "create-due"], "set-option shop.orders tag.automatic-creation='process-time'"),
    ):
        code, _, error = lake_ends("-w", catalog.location, *words, "shop.orders")
        assert code != 0
        assert f"`lake -w {catalog.location} {mends}`" in error
        lake_says(catalog, *shlex.split(mends))
        assert lake_ends("-w", catalog.location, *words, "shop.orders")[0] == 0
