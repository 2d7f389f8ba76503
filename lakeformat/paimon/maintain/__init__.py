# SPDX-License-Identifier: Apache-2.0
"""Full maintenance of a table: all steps in order, and numbers of the table before and after."""

from lakeformat.paimon.maintain.maintain import maintain

__all__ = ["maintain"]
