# SPDX-License-Identifier: Apache-2.0
"""System tables: the metadata of a table as rows, with the same columns as in Java."""
