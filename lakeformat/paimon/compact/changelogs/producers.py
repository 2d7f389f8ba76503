# SPDX-License-Identifier: Apache-2.0
"""Chooses how a compaction merges: with a changelog, with a lookup of old rows, or with neither."""

from __future__ import annotations

from lakeformat.paimon.compact.changelogs.changelog import ChangelogMerge, Unchanged
from lakeformat.paimon.compact.changelogs.first_row import FirstRowMerge
from lakeformat.paimon.compact.changelogs.full import FullChangelogMerge
from lakeformat.paimon.compact.changelogs.lookup import LookupMerge
from lakeformat.paimon.compact.unit import CompactUnit
from lakeformat.paimon.merge.first_row import FirstRow
from lakeformat.paimon.merge.looked_up import looks_up
from lakeformat.paimon.merge.merge_setup import merge_engine
from lakeformat.paimon.options import TableOptions
from lakeformat.paimon.schema import TableSchema

__all__ = ["changelog_merge", "guarantee"]

_LOOKUP, _FULL = "lookup", "full-compaction"
_GUARANTEES = {"none": "none", "input": "as written", _LOOKUP: "complete", _FULL: "net"}


def guarantee(options: TableOptions) -> str:
    """Return ``complete``, ``net``, ``as written`` or ``none``: what a table's changelog contains.

    docs/changelog.md explains these words.
    """
    return _GUARANTEES[options.changelog_producer]


def changelog_merge(schema: TableSchema, unit: CompactUnit) -> ChangelogMerge | None:
    """Return the merge that makes a changelog or looks up old rows; None if the unit needs
    neither.
    """
    options, engine = schema.table_options, merge_engine(schema)
    unchanged = Unchanged.of_schema(schema)
    if options.changelog_producer == _FULL:
        return FullChangelogMerge(engine, unit.output_level, unchanged) if unit.is_last else None
    if not looks_up(options):
        return None
    if isinstance(engine, FirstRow):
        return FirstRowMerge(engine, unit.output_level)
    return LookupMerge(
        engine, unit.output_level, unchanged, makes_changelog=options.makes_changelog
    )
