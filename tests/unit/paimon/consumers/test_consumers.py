"""Consumers: overwritten in place, so that a reader may meet half of one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakeformat.environment import SYSTEM
from lakeformat.errors import CorruptTableError, InvalidRequestError
from lakeformat.paimon.layout import TableLayout
from lakeformat.paimon.metadata.consumer import (
    Consumer,
    consumer_files,
    delete_consumer,
    read_consumer,
    read_consumers,
    write_consumer,
)
from lakeformat.storage import MemoryStorage
from lakeformat.tables.consumers.files import TRIES

LAYOUT = TableLayout("t")
PATH = f"{LAYOUT.consumer_directory}/consumer-me"
PATIENT = replace(SYSTEM, sleep_seconds=lambda seconds: None)


def test_a_consumer_is_written_over_and_forgotten():
    storage = MemoryStorage("consumers")
    for number in (3, 5):
        write_consumer(storage, LAYOUT, Consumer("me", number))
    assert json.loads(storage.read(PATH)) == {"nextSnapshot": 5}
    assert read_consumers(storage, LAYOUT, PATIENT) == [Consumer("me", 5)]
    delete_consumer(storage, LAYOUT, "me")
    assert read_consumer(storage, LAYOUT, "me", PATIENT) is None


@pytest.mark.parametrize("partial", [b"", b'{"nextSn', b"{}"])
def test_partial_content_is_read_again_until_it_is_whole(partial):
    storage = MemoryStorage("consumers")
    storage.overwrite(PATH, partial)
    pauses = []

    def somebody_writes(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            storage.overwrite(PATH, b'{"nextSnapshot": 4, "later": true}')

    patient = replace(SYSTEM, sleep_seconds=somebody_writes)
    assert read_consumer(storage, LAYOUT, "me", patient) == Consumer("me", 4)
    assert pauses == [0.2] * 3


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"nextSnapshot": "two"}', b'{"nextSnapshot": 2, "position": "none"}'],
)
def test_a_damaged_consumer_is_an_error_that_says_what_to_do(content):
    storage = MemoryStorage("consumers")
    storage.overwrite(PATH, content)
    with pytest.raises(
        CorruptTableError, match=f"consumer-me.*delete the.*in each of {TRIES} reads"
    ):
        read_consumer(storage, LAYOUT, "me", PATIENT)


def test_consumers_of_a_branch_are_its_own():
    storage = MemoryStorage("consumers")
    write_consumer(storage, LAYOUT.on_branch("dev"), Consumer("me", 1))
    assert consumer_files(storage, LAYOUT).ids() == []
    assert consumer_files(storage, LAYOUT.on_branch("dev")).ids() == ["me"]


@pytest.mark.parametrize("consumer_id", ["", " ", "a/b"])
def test_an_id_that_is_no_part_of_a_file_name_is_refused(consumer_id):
    with pytest.raises(InvalidRequestError, match="not allowed"):
        write_consumer(MemoryStorage("consumers"), LAYOUT, Consumer(consumer_id, 1))
