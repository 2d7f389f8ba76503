"""Files of an Iceberg table are read below its location, or where the caller allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.iceberg.file_places import places_of
from lakeformat.storage import NO_ROOTS, ExternalRoots, LocalStorage


@pytest.fixture
def root(tmp_path) -> Path:
    table = tmp_path / "shop" / "orders"
    (table / "metadata").mkdir(parents=True)
    (table / "metadata" / "a-m0.avro").write_bytes(b"here")
    (tmp_path / "elsewhere.avro").write_bytes(b"there")
    return table


def places(root: Path, location: str | None = None, roots: ExternalRoots = NO_ROOTS):
    return places_of(LocalStorage(), str(root), location or f"file://{root}", roots)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_every_spelling_of_an_address_below_the_table_is_one_place(root, scheme):
    assert places(root).read(f"{scheme}{root}/metadata/a-m0.avro") == b"here"
    assert places(root, f"{scheme}{root}/").read(f"{root}/metadata/a-m0.avro") == b"here"


@pytest.mark.parametrize("path", ["{parent}/elsewhere.avro", "{root}/../../elsewhere.avro"])
def test_a_file_outside_of_the_table_is_read_only_where_the_caller_allows_it(root, path):
    address = f"file://{path.format(root=root, parent=root.parent.parent)}"
    advice = f"which no external root allows.*lake --external-root file://{root.parent.parent}$"
    with pytest.raises(InvalidRequestError, match=advice):
        places(root).read(address)
    allowed = ExternalRoots.of([str(root.parent.parent)])
    if ".." not in path:
        assert places(root, roots=allowed).read(address) == b"there"


def test_a_link_below_the_table_is_not_followed(root):
    (root / "metadata" / "link.avro").symlink_to(root.parent.parent / "elsewhere.avro")
    with pytest.raises(InvalidRequestError, match="symbolic link"):
        places(root).read(f"file://{root}/metadata/link.avro")


def test_a_table_that_was_moved_is_an_error_that_says_so(root):
    with pytest.raises(InvalidRequestError, match=r"names the location file:///old/orders\. The"):
        places(root, "file:///old/orders")


def test_a_table_that_is_reached_through_a_link_was_not_moved(root):
    link = root.parent / "link"
    link.symlink_to(root)
    assert places(link, f"file://{root}").read(f"file://{root}/metadata/a-m0.avro") == b"here"


def test_a_missing_file_is_named_with_the_table(root):
    words = r"names the file \S+/gone\.avro, which does not exist: .*; if another program expired"
    with pytest.raises(CorruptTableError, match=words):
        places(root).read(f"file://{root}/metadata/gone.avro")


@pytest.mark.parametrize("address", ["", "relative/a.avro", "file://host/a.avro"])
def test_an_address_that_is_none_is_damage(root, address):
    with pytest.raises(CorruptTableError, match="neither an absolute path nor a valid URI"):
        places(root).read(address)


@pytest.mark.parametrize("address", ["s3://AK:private@bucket/a", "hdfs://AK:private@host/a"])
def test_an_error_shows_no_credential_of_an_address(root, address):
    with pytest.raises((CorruptTableError, InvalidRequestError), match=r"://…@") as found:
        places(root).read(address)
    assert "private" not in str(found.value)
    with pytest.raises((CorruptTableError, InvalidRequestError), match=r"://…@") as found:
        places(root, address)
    assert "private" not in str(found.value)


def test_the_error_of_an_address_with_a_credential_names_the_property_to_change(root):
    with pytest.raises(CorruptTableError, match=r"such as 'write\.data\.path' names it, change"):
        places(root).read("s3://AK:private@bucket/a")
