"""Parquet files: how they are read, written, joined, and looked at before Arrow trusts them."""
