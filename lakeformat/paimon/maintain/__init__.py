# SPDX-License-Identifier: Apache-2.0
"""Full maintenance of a table: all steps in order, with a measurement before and after them."""

from lakeformat.paimon.maintain.maintain import maintain

__all__ = ["maintain"]
