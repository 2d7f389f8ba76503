# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Parquet, ORC, Avro and Puffin files, and reads CSV and JSON files of other
programs.
"""
