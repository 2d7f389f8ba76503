"""Commits without an answer are remembered where no other user can take the mark away."""

from __future__ import annotations

import os
import stat
import tempfile

import pytest

import lakeformat as lake
from spark_jobs.source.unknown_outcome import is_unknown, mark_unknown

COMMIT = lake.CommitId("../run", 7)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The directory of the marks, in a directory for temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"lake-outcome-unknown-{os.getuid()}"


def test_a_mark_is_found_again_and_only_for_its_commit(place):
    assert not is_unknown(COMMIT)
    mark_unknown(COMMIT)
    assert is_unknown(COMMIT)
    assert not is_unknown(lake.CommitId("../run", 8))


def test_the_directory_of_the_marks_is_for_this_user_alone(place):
    mark_unknown(COMMIT)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert len(list(place.iterdir())) == 1


def open_to_others(place, elsewhere):
    place.mkdir()
    place.chmod(0o777)


def a_link(place, elsewhere):
    place.symlink_to(elsewhere)


def a_file(place, elsewhere):
    place.touch()


@pytest.mark.parametrize("prepare", [open_to_others, a_link, a_file])
def test_where_others_may_remove_marks_every_file_stays(place, tmp_path, caplog, prepare):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    prepare(place, elsewhere)
    mark_unknown(COMMIT)
    assert list(elsewhere.iterdir()) == []
    assert is_unknown(COMMIT)
    assert is_unknown(lake.CommitId("another", 1))
    assert "set TMPDIR to a directory of this user" in caplog.text


def test_a_directory_of_another_user_is_not_trusted(place, monkeypatch):
    another = os.getuid() + 1
    place.with_name(f"lake-outcome-unknown-{another}").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: another)
    assert is_unknown(COMMIT)
