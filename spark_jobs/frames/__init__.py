# SPDX-License-Identifier: Apache-2.0
"""Lake tables in Spark: tasks read and write them as DataFrames, count rows and merge files."""
