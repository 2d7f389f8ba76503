"""Arguments of before still work, and name what to write instead."""

from __future__ import annotations

import inspect
from contextlib import suppress

import pytest

import lakeformat as lake
from lakeformat.deprecation import renamed_argument
from lakeformat.paimon.branches.table_branches import TableBranches
from lakeformat.paimon.tags.table_tags import TableTags

RENAMED = [
    lake.Table.analyze,
    lake.Table.compact,
    lake.Table.delete,
    lake.Table.expire_snapshots,
    lake.Table.remove_orphans,
    lake.Table.rewrite_file_indexes,
    lake.Table.update,
    TableBranches.delete,
    TableTags.create_due,
    TableTags.delete,
    TableTags.expire,
    lake.clone_database,
    lake.clone_table,
]


@renamed_argument("old", "new")
def add(first: int, *, new: int = 0) -> int:
    return first + new


def test_the_old_name_works_with_a_warning_that_names_the_new_one():
    with pytest.warns(DeprecationWarning, match=r"add\(old=\.\.\.\) is deprecated: write new="):
        assert add(1, old=2) == 3
    assert add(1, new=2) == 3


def test_both_names_are_refused():
    with pytest.raises(TypeError, match="got 'new' and its old name 'old'"):
        add(1, old=2, new=3)


def call_with_tell(function, values):
    with suppress(AttributeError, TypeError, lake.LakeError):
        next(function(*values, tell=print))  # a generator runs nothing before


@pytest.mark.parametrize("function", RENAMED, ids=lambda found: found.__qualname__)
def test_every_function_that_took_tell_takes_it_still(function):
    parameters = inspect.signature(function).parameters
    required = [
        None
        for given in parameters.values()
        if given.default is given.empty and given.kind is not given.VAR_POSITIONAL
    ]
    assert "on_progress" in parameters
    with pytest.warns(DeprecationWarning, match=r"\(tell=\.\.\.\) is deprecated: write on_pro"):
        call_with_tell(function, required)
