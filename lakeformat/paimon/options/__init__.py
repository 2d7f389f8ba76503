# SPDX-License-Identifier: Apache-2.0
"""The options of a table: each is declared once, in a file per subject, and read by
``TableOptions``.
"""

from lakeformat.paimon.options.declared import declared_options, find_option
from lakeformat.paimon.options.table import TableOptions

__all__ = ["TableOptions", "declared_options", "find_option"]
