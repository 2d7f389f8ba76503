"""The difference of two states of metadata is the request of a REST commit."""

from __future__ import annotations

from dataclasses import replace

from lakeformat.catalog.iceberg.rest_updates import commit_request
from lakeformat.iceberg.metadata.snapshot import Reference
from lakeformat.iceberg.metadata.updates import (
    remove_properties,
    remove_reference,
    remove_snapshots,
    set_properties,
    set_reference,
)
from lakeformat.iceberg.partition_spec import PartitionSpec
from tests.unit.iceberg.path_table import appended, empty_metadata

EMPTY = empty_metadata(properties={"a": "1", "b": "2"})
ONE = appended(EMPTY, "one")
TWO = appended(ONE, "two")


def updates(before, after) -> list[dict]:
    return commit_request(before, after)["updates"]


def test_an_append_adds_a_snapshot_and_moves_the_branch():
    [added, moved] = updates(ONE, TWO)
    assert added["action"] == "add-snapshot"
    assert added["snapshot"]["snapshot-id"] == TWO.current_snapshot_id
    assert added["snapshot"]["parent-snapshot-id"] == ONE.current_snapshot_id
    assert moved == {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "snapshot-id": TWO.current_snapshot_id,
        "type": "branch",
    }


def test_the_requirements_name_the_whole_state():
    tagged = set_reference(ONE, Reference("v1", ONE.current_snapshot_id, "tag"), 1)
    found = {
        (each["type"], each.get("ref")): each
        for each in commit_request(tagged, TWO)["requirements"]
    }
    head = ONE.current_snapshot_id
    assert found["assert-table-uuid", None]["uuid"] == "4f2b"
    assert found["assert-ref-snapshot-id", "main"]["snapshot-id"] == head
    assert found["assert-ref-snapshot-id", "v1"]["snapshot-id"] == head
    assert found["assert-current-schema-id", None]["current-schema-id"] == 0


def test_a_first_append_requires_that_the_branch_does_not_exist():
    requirements = commit_request(EMPTY, ONE)["requirements"]
    assert {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None} in requirements


def test_a_new_reference_requires_that_it_does_not_exist():
    tagged = set_reference(ONE, Reference("v1", ONE.current_snapshot_id, "tag"), 1)
    requirements = commit_request(ONE, tagged)["requirements"]
    assert {"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": None} in requirements
    head = {"ref": "main", "snapshot-id": ONE.current_snapshot_id}
    assert {"type": "assert-ref-snapshot-id", **head} in requirements


def test_properties_are_set_and_removed():
    changed = set_properties(remove_properties(EMPTY, ["a"]), {"b": "3", "c": "4"})
    assert updates(EMPTY, changed) == [
        {"action": "set-properties", "updates": {"b": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["a"]},
    ]


def test_snapshots_and_references_are_removed():
    tagged = set_reference(TWO, Reference("v1", ONE.current_snapshot_id, "tag"), 1)
    without = remove_reference(tagged, "v1")
    expired = remove_snapshots(without, [ONE.current_snapshot_id])
    assert updates(tagged, expired) == [
        {"action": "remove-snapshot-ref", "ref-name": "v1"},
        {"action": "remove-snapshots", "snapshot-ids": [ONE.current_snapshot_id]},
    ]


def test_schemas_and_specs_are_added_and_made_current():
    schema = replace(EMPTY.schema, schema_id=1)
    changed = replace(
        EMPTY,
        schemas=(*EMPTY.schemas, schema),
        current_schema_id=1,
        partition_specs=(*EMPTY.partition_specs, PartitionSpec(1, ())),
        default_spec_id=1,
    )
    found = updates(EMPTY, changed)
    assert [each["action"] for each in found] == [
        "add-schema",
        "add-spec",
        "set-current-schema",
        "set-default-spec",
    ]
    assert found[0]["last-column-id"] == 1


def test_the_version_is_raised_first():
    changed = set_properties(replace(EMPTY, format_version=3, next_row_id=0), {"c": "1"})
    assert updates(EMPTY, changed)[0] == {"action": "upgrade-format-version", "format-version": 3}


def test_no_change_asks_for_nothing():
    assert updates(TWO, TWO) == []
