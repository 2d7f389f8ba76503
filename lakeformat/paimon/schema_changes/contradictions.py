# SPDX-License-Identifier: Apache-2.0
"""The differences between the schema of an existing table and the description of a wanted one."""

from __future__ import annotations

from lakeformat.paimon.options.profile import with_profile
from lakeformat.paimon.schema import TableSchema
from lakeformat.tables.credential_options import shown_option
from lakeformat.tables.wanted_table import WantedTable, difference

__all__ = ["contradictions"]

_KEY_OPTIONS = {"primary-key": "primary_key", "partition": "partition_by"}
"""Each option that lists columns, with the field of ``WantedTable`` that has the same meaning."""


def contradictions(schema: TableSchema, wanted: WantedTable) -> list[str]:
    """Return a text for each difference between the existing ``schema`` and ``wanted``.

    The primary key, the partition columns and each option are compared only if ``wanted`` sets
    them. Columns outside the keys are not compared.
    """
    options = dict(wanted.options)
    keys = {
        name: options.pop(option).replace(" ", "").split(",")
        for option, name in _KEY_OPTIONS.items()
        if option in options
    }
    for name, given in (
        ("primary_key", wanted.primary_key),
        ("partition_by", wanted.partition_by),
    ):
        if given is not None:
            keys[name] = [*given]
    there = {"primary_key": [*schema.primary_keys], "partition_by": [*schema.partition_keys]}
    options = with_profile(
        options, None, primary_key=schema.primary_keys, partition_by=schema.partition_keys
    )
    differing = schema.table_options.differing(options)
    return [
        *(
            difference(name, there[name], given)
            for name, given in keys.items()
            if there[name] != given
        ),
        *(
            difference(f"option {key!r}", shown_option(key, current), shown_option(key, value))
            for key, (current, value) in differing.items()
        ),
    ]
