"""Reads, writes and joins Parquet files, and checks them before Arrow reads them."""
