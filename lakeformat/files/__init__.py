# SPDX-License-Identifier: Apache-2.0
"""Reads and writes files of rows in Parquet, ORC, Avro, CSV and JSON, independent of any table
format.
"""
