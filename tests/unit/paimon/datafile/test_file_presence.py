"""The check that a data file exists as it was written."""

from __future__ import annotations

import pytest

from lakeformat.errors import UnavailableError
from lakeformat.paimon.datafile.file_presence import FileRemains, what_is_left
from lakeformat.storage import MemoryStorage

WRITTEN = 100


@pytest.mark.parametrize(
    ("content", "is_whole"),
    [
        (b"x" * WRITTEN, True),
        (b"x" * (WRITTEN + 1), True),
        (b"x" * (WRITTEN - 1), False),
        (b"x" * 50 + b"PAR1", True),
        (b"x" * 50 + b"ORC\x17", True),
        (b"x" * 50 + b"PAR1x", False),
        (b"AR1", False),
        (b"", False),
    ],
)
def test_a_shorter_file_is_whole_only_with_an_end(content, is_whole):
    storage = MemoryStorage("m")
    storage.overwrite("f", content)
    assert what_is_left(storage, "f", WRITTEN) == FileRemains(is_whole, len(content))


def test_a_file_that_is_gone_has_no_size():
    assert what_is_left(MemoryStorage("m"), "f", 1) == FileRemains(is_whole=False, size=None)


class Closed(MemoryStorage):
    """Lists files, and refuses to read them."""

    def open_input(self, path):
        raise UnavailableError(path)


def test_a_file_that_nobody_may_open_counts_as_whole():
    storage = Closed("m")
    storage.overwrite("f", b"")
    assert what_is_left(storage, "f", 1) == FileRemains(is_whole=True, size=None)
