# SPDX-License-Identifier: Apache-2.0
"""Statistics of Iceberg tables, for query planners of other engines."""
