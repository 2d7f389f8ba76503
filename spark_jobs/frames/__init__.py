# SPDX-License-Identifier: Apache-2.0
"""Lake tables as DataFrames, which Spark's tasks read, write, count and compact."""
