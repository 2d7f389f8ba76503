# SPDX-License-Identifier: Apache-2.0
"""Reads, writes and joins Parquet files, and checks them before Arrow reads them."""
