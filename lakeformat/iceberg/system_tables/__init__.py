# SPDX-License-Identifier: Apache-2.0
"""System tables: a table's own metadata as rows, with the columns that Java gives them."""
