"""Names of files with a known kind, and names as numbers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from lakeformat.paimon.orphans.file_names import is_temporary, writer_of
from lakeformat.paimon.orphans.name_set import LiveNames, NameSet, numbers_of
from tests.sampling import SEED

UNIQUE = "0a1b2c3d-0000-4000-8000-0123456789ab"


@pytest.mark.parametrize(
    ("name", "is_prepared"),
    [
        (f".snapshot-3.{UNIQUE}.tmp", True),
        (".LATEST.5f.tmp", True),
        (f"snapshot-3{UNIQUE}.tmp", True),
        ("snapshot-3", False),
        ("snapshot-3.tmp", False),
        (".moving.tmp", False),
        (".expire-3-5f", False),
    ],
)
def test_files_prepared_for_publication_are_known_by_their_names(name, is_prepared):
    assert is_temporary(name) is is_prepared


def test_files_of_one_writer_have_a_part_of_their_names_in_common():
    other = UNIQUE.replace("0a", "0b")
    assert writer_of(f"data-{UNIQUE}-0.parquet") == writer_of(f"changelog-{UNIQUE}-7.orc") == UNIQUE
    assert writer_of(f"manifest-{other}-0") == other
    assert writer_of("README") is None


# ---------------------------------------------------------------- how old a file must be


def test_names_that_were_added_are_there_and_no_others():
    random = Random(SEED)
    names, known = NameSet(), set()
    for _ in range(50):
        batch = [random.randrange(3_000) for _ in range(random.randrange(200))]
        names.add(numbers_of(b"%d" % each for each in batch))
        known |= set(batch)
        asked = [random.randrange(3_000) for _ in range(50)]
        found = names.contains(numbers_of(b"%d" % each for each in asked))
        assert found.tolist() == [each in known for each in asked]
    assert len(names) == len(known)


def test_of_entries_in_order_the_names_are_left_that_are_live():
    random = Random(SEED)
    for _ in range(200):
        live, there, ever = LiveNames(), set(), []
        for _ in range(random.randrange(6)):
            batch = []
            for _ in range(random.randrange(8)):
                is_delete = bool(there) and random.random() < 0.4
                name = random.choice(sorted(there)) if is_delete else len(ever)
                (there.discard if is_delete else there.add)(name)
                ever.append(name)
                batch.append((name, is_delete))
            names = numbers_of(b"%d" % name for name, _ in batch)
            live.add(names, np.array([gone for _, gone in batch], np.bool_))
        left = {int(each) for each in live.left()}
        assert left == {int(each) for each in numbers_of(b"%d" % name for name in there)}


def test_a_history_that_does_not_add_up_keeps_the_file():
    """Added twice and taken out once; moved up a level with both entries in the wrong order."""
    for kinds in ([False, False, True], [False, False, True, True, False], [True, False]):
        live = LiveNames()
        live.add(numbers_of([b"file"] * len(kinds)), np.array(kinds))
        assert len(live.left()) == 1
