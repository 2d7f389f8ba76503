# SPDX-License-Identifier: Apache-2.0
"""``format("lake")``: tables as a data source of Spark, for batches and streams."""
