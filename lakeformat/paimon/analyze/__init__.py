# SPDX-License-Identifier: Apache-2.0
"""ANALYZE: statistics of a table's rows, for the planners of other engines."""
