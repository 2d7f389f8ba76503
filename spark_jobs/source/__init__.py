# SPDX-License-Identifier: Apache-2.0
"""``format("lake")``: tables as a data source of Spark, for reads and writes of batches and
streams.
"""
