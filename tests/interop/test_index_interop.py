"""pypaimon reads and continues our index files and index manifests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakeformat.files.deletion_vector import DeletionVector
from lakeformat.files.vector_record import VectorForm
from lakeformat.paimon.index.combination import combine
from lakeformat.paimon.index.deletion_vector_file import encode_deletion_vectors
from lakeformat.paimon.index.hash_index import encode_hash_index, read_hash_index
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.index_manifest import (
    IndexManifestEntry,
    read_index_manifest,
    write_index_manifest,
)
from lakeformat.paimon.options import TableOptions
from lakeformat.storage import LocalStorage
from tests.golden.tables import HOW_TO_UNSKIP, golden_tables
from tests.interop.peer import Peer

TABLES = {table.name: table for table in golden_tables()}
STORAGE = LocalStorage()

pytestmark = pytest.mark.skipif(not TABLES, reason=HOW_TO_UNSKIP)


def copied(golden_name: str, peer: Peer, table: str) -> TableLayout:
    """A golden table as ``shop.<table>`` of the peer's warehouse, with files that can change."""
    root = peer.warehouse / "shop.db" / table
    shutil.copytree(TABLES[golden_name].location, root, copy_function=shutil.copyfile)
    for directory in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        directory.chmod(0o755)
    return TableLayout(str(root))


def index_manifest(layout: TableLayout) -> str:
    """The one the latest snapshot names."""
    number = Path(layout.latest_hint).read_text()
    name = json.loads(Path(layout.snapshot(int(number))).read_text())["indexManifest"]
    assert isinstance(name, str)
    return name


def replace_index(
    layout: TableLayout, old: IndexManifestEntry, new: IndexManifestEntry, content: bytes
) -> None:
    """Put an index file of ours in the place of another, in the snapshot that is there."""
    with STORAGE.open_output(f"{layout.root}/index/{new.file_name}") as stream:
        stream.write(content)
    name = index_manifest(layout)
    state = combine(read_index_manifest(STORAGE, layout, name), removed=[old], added=[new])
    STORAGE.delete(layout.manifest(name))
    write_index_manifest(STORAGE, layout, name, state, TableOptions())


def ours(old: IndexManifestEntry, content: bytes, **changes: object) -> IndexManifestEntry:
    members = {name: getattr(old, name) for name in old.__dataclass_fields__}
    named = {"file_name": f"ours-{old.bucket}", "file_size": len(content)}
    return IndexManifestEntry(**{**members, **named, **changes})


@pytest.mark.parametrize("deleted", [[2, 3, 19], [*range(1, 15)], []], ids=len)
def test_rows_we_delete_are_gone_for_pypaimon(peer: Peer, deleted: list[int]):
    layout = copied("format/deletion_vectors", peer, "vectors")
    [old] = read_index_manifest(STORAGE, layout, index_manifest(layout))
    assert old.ranges is not None
    vectors = {old.ranges[0].data_file_name: DeletionVector.of(deleted)}
    content, ranges = encode_deletion_vectors(vectors, VectorForm.BITMAP32)
    replace_index(layout, old, ours(old, content, ranges=ranges), content)
    left = sorted(peer.read("shop.vectors")["a"].to_pylist())
    assert left == [row for row in range(20) if row not in deleted]


def test_pypaimon_keeps_keys_in_the_buckets_our_hash_index_says(peer: Peer):
    layout = copied("format/pk_dynamic_bucket", peer, "hashes")
    for old in read_index_manifest(STORAGE, layout, index_manifest(layout)):
        path = f"{layout.root}/index/{old.file_name}"
        hashes = read_hash_index(STORAGE, path, count=old.row_count)
        content = encode_hash_index(np.sort(hashes))
        replace_index(layout, old, ours(old, content), content)
    before = peer.read("shop.hashes").sort_by("k")

    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])
    keys = before["k"].to_pylist()
    peer.write("shop.hashes", pa.table([keys, ["again"] * len(keys)], schema=schema))

    after = peer.read("shop.hashes").sort_by("k")
    assert after["k"].to_pylist() == keys
    assert set(after["v"].to_pylist()) == {"again"}
