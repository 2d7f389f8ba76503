# SPDX-License-Identifier: Apache-2.0
"""Every option of a table, declared once, in a file per subject; ``TableOptions`` has them all."""

from lakeformat.paimon.options.declared import declared_options, find_option
from lakeformat.paimon.options.table import TableOptions

__all__ = ["TableOptions", "declared_options", "find_option"]
