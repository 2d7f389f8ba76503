"""A file that cannot be deleted is counted, and the warning names what deletes it later."""

from __future__ import annotations

import pytest

from lakeformat.errors import UnavailableError
from lakeformat.iceberg.expire.exclusive_files import ExclusiveFiles
from lakeformat.iceberg.purge import purge
from lakeformat.storage.memory import MemoryStorage
from lakeformat.tables.deleter import Deleter
from lakeformat.tables.removal import FileClass, Removal


class Unanswering(MemoryStorage):
    def delete(self, path: str) -> None:
        raise UnavailableError("no answer")


@pytest.fixture
def removal():
    return Removal(Unanswering("deleter"), "t/data-0.parquet", FileClass.DATA, "unused")


def test_the_next_run_tries_again(removal, caplog):
    deleter = Deleter()
    assert not deleter.remove([removal])
    assert deleter.deleted.failures == 1
    assert caplog.messages == [
        f"could not delete {removal.uri}: no answer. The next run tries again"
    ]


def test_of_a_dropped_table_no_next_run_deletes_the_file(removal, caplog):
    files = ExclusiveFiles()
    files.steps.append([removal])
    assert purge(files).failures == 1
    assert caplog.messages == [
        f"could not delete {removal.uri}: no answer. The table is dropped: delete the file by hand"
    ]
