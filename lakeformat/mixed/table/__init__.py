# SPDX-License-Identifier: Apache-2.0
"""The public class of a Mixed table."""

from lakeformat.mixed.table.open import open_stored
from lakeformat.mixed.table.table import MixedTable

__all__ = ["MixedTable", "open_stored"]
