# SPDX-License-Identifier: Apache-2.0
"""Reports table options with an invalid value; the health report uses their defaults instead."""

from __future__ import annotations

import shlex
from dataclasses import replace

from lakeformat.paimon.handle import TableHandle
from lakeformat.paimon.options.operation import Operation
from lakeformat.tables.health.verdict import Reason
from lakeformat.types.sentence import sentence

__all__ = ["misread_reasons", "without_misread"]

_OF_ROWS = (Operation.READ, Operation.WRITE)


def without_misread(handle: TableHandle) -> TableHandle:
    """Return the handle without the options that have invalid values, so that their defaults
    apply.
    """
    misread = handle.options.misread()
    if not misread:
        return handle
    options = {key: text for key, text in handle.schema.options.items() if key not in misread}
    return replace(handle, schema=replace(handle.schema, options=options))


def misread_reasons(handle: TableHandle) -> tuple[Reason, ...]:
    """Return a reason for each invalid option, with the commands that correct it."""
    table, options = handle.argument, handle.options
    return tuple(
        Reason(
            f"{sentence(error)} Operations that need the option fail; this report uses the "
            "option's default",
            f"lake set-option {table} {shlex.quote(key)}=VALUE, or, for the default, "
            f"lake unset-option {table} {shlex.quote(key)}",
            is_severe=any(options.uses(key, operation) for operation in _OF_ROWS),
        )
        for key, error in options.misread().items()
    )
