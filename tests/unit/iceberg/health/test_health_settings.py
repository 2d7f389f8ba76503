"""The properties that decide what is healthy."""

from __future__ import annotations

from lakeformat.iceberg.health.settings import settings_of


def test_properties_set_the_target_sizes():
    found = settings_of({"write.target-file-size-bytes": "1000"})
    assert (found.target_file_size, found.manifest_target_size) == (1000, 8 << 20)


def test_an_invalid_property_has_its_default_and_a_note():
    found = settings_of({"write.target-file-size-bytes": "big", "gc.enabled": "perhaps"})
    assert (found.target_file_size, found.may_expire) == (512 << 20, True)
    assert [note.split(" is ")[0] for note in found.notes] == [
        "the table property 'write.target-file-size-bytes'",
        "the table property 'gc.enabled'",
    ]


def test_a_table_whose_files_must_stay_has_a_note():
    found = settings_of({"gc.enabled": "false"})
    assert not found.may_expire
    assert "expiry and removal of orphan files are forbidden" in found.notes[0]
